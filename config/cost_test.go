package config_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/devcluster"
)

const (
	// mostCost is what one policy may cost for one request with a tenth of the largest object. Kubernetes says that a million is about 100 ms
	// of the API server. A cost that grows with the square of the size is far above.
	mostCost = 100_000
	// questionCost is what Kubernetes adds for a question to the authorizer, which needs no time of CEL.
	questionCost = 350_000
)

// SEC-X53: no request, however large, makes a policy of ours expensive, or ends in an error of cost, which nobody can act on.
func TestPoliciesAreCheapForTheLargestObjects(t *testing.T) {
	for _, p := range policies(t) {
		t.Run("SEC-X53 the largest objects that etcd stores cost a policy at most 1,000,000 units of CEL without questions to the "+
			"authorizer; no error of cost: "+p.Name, func(t *testing.T) {
			evaluated := compile(t, &p)
			for _, r := range requestsFor(&p) {
				cost, err := evaluated.cost(t.Context(), r)
				if cost > mostCost || err != nil {
					t.Errorf("%s: cost %d, want at most %d; error %v", r.name, cost, mostCost, err)
				}
			}
		})
	}
}

// SEC-X50: what is above a bound already may stay, in every update of another field.
func TestObjectsAboveABoundCanBeChanged(t *testing.T) {
	long := owner(strings.Repeat("k", 1100))
	was := map[string]shape{
		"a long owner": {metadata("ownerReferences", []any{long(1), long(2)}), metadata("ownerReferences", []any{long(1)})},
		"owners":       {metadata("ownerReferences", list(long)), metadata("ownerReferences", list(long)[1:])},
		"finalizers":   {metadata("finalizers", list(finalizer("f"))), metadata("finalizers", list(finalizer("f"))[1:])},
		"labels":       {metadata("labels", texts("l", mostLabels)), metadata("labels", texts("l", mostLabels-1))},
	}
	for _, p := range policies(t) {
		if p.Name != "warren-object-metadata" {
			continue
		}
		evaluated := compile(t, &p)
		for what, s := range was {
			t.Run("SEC-X50 what is above a bound can be made smaller in a SubNamespace that has it, but no new "+
				"SubNamespace may have it: "+what, func(t *testing.T) {
				if refused := evaluated.refuses(t, newRequest(&p, v1alpha1.GroupVersion.Group, "subnamespaces", "", what, s.old, s.now)); refused {
					t.Error("a user can't take one off")
				}
				if refused := evaluated.refuses(t, newRequest(&p, v1alpha1.GroupVersion.Group, "subnamespaces", "", what, nil, s.now)); !refused {
					t.Error("a user can create such an object")
				}
			})
		}
	}
}

// policies returns the policies of every overlay and component. Those that list kinds are generated, as `make manifests` does.
func policies(t *testing.T) []admissionregistrationv1.ValidatingAdmissionPolicy {
	t.Helper()
	text, err := os.ReadFile("manager/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	generated, err := devcluster.KindsOf(string(text))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("policy/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("policies: %q, %v", files, err)
	}
	components, err := filepath.Glob("components/*/*policy.yaml")
	if err != nil || len(components) == 0 {
		t.Fatalf("policies of components: %q, %v", components, err)
	}
	found := map[string]admissionregistrationv1.ValidatingAdmissionPolicy{}
	for _, file := range append(files, components...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var p admissionregistrationv1.ValidatingAdmissionPolicy // the binding follows it
		if err := yaml.Unmarshal([]byte(strings.Split(string(text), "\n---\n")[0]), &p); err != nil {
			t.Fatal(err)
		}
		if p.Kind == "ValidatingAdmissionPolicy" {
			found[p.Name] = p
		}
	}
	for _, u := range generated {
		if u.GetKind() == "ValidatingAdmissionPolicy" {
			found[u.GetName()] = read[admissionregistrationv1.ValidatingAdmissionPolicy](t, u.Object)
		}
	}
	return slices.Collect(maps.Values(found))
}

// expression is one of a policy's, with the type of its result.
type expression struct {
	name, text string
	result     *celgo.Type
}

func (e *expression) GetName() string            { return e.name }
func (e *expression) GetExpression() string      { return e.text }
func (e *expression) ReturnTypes() []*celgo.Type { return []*celgo.Type{e.result} }

// compiled is a policy in the form in which the API server evaluates it (compilePolicy in apiserver's package validating).
type compiled struct {
	compiler                          *cel.CompositedCompiler
	conditions, validations, messages cel.ConditionEvaluator
}

func compile(t *testing.T, p *admissionregistrationv1.ValidatingAdmissionPolicy) compiled {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(version.MajorMinor(1, 34)))
	if err != nil {
		t.Fatal(err)
	}
	authorized := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	for _, v := range p.Spec.Variables {
		result := compiler.CompileAndStoreVariable(&expression{v.Name, v.Expression, celgo.AnyType}, authorized, environment.StoredExpressions)
		if result.Error != nil {
			t.Fatalf("%s: variable %s: %v", p.Name, v.Name, result.Error)
		}
	}
	var conditions, validations, messages []cel.ExpressionAccessor
	for _, c := range p.Spec.MatchConditions {
		conditions = append(conditions, &expression{c.Name, c.Expression, celgo.BoolType})
	}
	for _, v := range p.Spec.Validations {
		validations = append(validations, &expression{"", v.Expression, celgo.BoolType})
		if v.MessageExpression != "" {
			messages = append(messages, &expression{"", v.MessageExpression, celgo.StringType})
		}
	}
	return compiled{
		compiler,
		compiler.CompileCondition(conditions, authorized, environment.StoredExpressions),
		compiler.CompileCondition(validations, authorized, environment.StoredExpressions),
		compiler.CompileCondition(messages, cel.OptionalVariableDeclarations{}, environment.StoredExpressions),
	}
}

// cost returns what a request costs without the questions to the authorizer, and the errors of expressions.
func (c compiled) cost(ctx context.Context, r request) (int64, error) {
	var asked questions
	bindings := cel.OptionalVariableBindings{Authorizer: &asked}
	reviewed := cel.CreateAdmissionRequest(r.attributes.Attributes, metav1.GroupVersionResource(r.attributes.GetResource()),
		metav1.GroupVersionKind(r.attributes.VersionedKind))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "payments", Labels: map[string]string{v1alpha1.LabelType: "root"}}}
	var cost int64
	var failed []error
	for _, step := range []struct {
		expressions cel.ConditionEvaluator
		bindings    cel.OptionalVariableBindings
		budget      int64
	}{
		{c.conditions, bindings, celconfig.RuntimeCELCostBudgetMatchConditions},
		{c.validations, bindings, celconfig.RuntimeCELCostBudget},
		{c.messages, cel.OptionalVariableBindings{}, celconfig.RuntimeCELCostBudget},
	} {
		shared := c.compiler.CreateContext(ctx)
		evaluations, left, err := step.expressions.ForInput(shared, r.attributes, reviewed, step.bindings, namespace, step.budget)
		if err != nil {
			return cost + step.budget, err
		}
		cost += step.budget - left
		matches := true
		for _, e := range evaluations {
			if e.Error != nil && strings.Contains(e.Error.Error(), "cost") { // the objects lack fields that a schema requires
				failed = append(failed, e.Error)
			}
			matches = matches && e.EvalResult != types.False
		}
		if step.expressions == c.conditions && !matches {
			break
		}
	}
	return cost - int64(asked)*questionCost, errors.Join(failed...)
}

// refuses reports whether a validation is false.
func (c compiled) refuses(t *testing.T, r request) bool {
	t.Helper()
	reviewed := cel.CreateAdmissionRequest(r.attributes.Attributes, metav1.GroupVersionResource(r.attributes.GetResource()),
		metav1.GroupVersionKind(r.attributes.VersionedKind))
	evaluations, _, err := c.validations.ForInput(c.compiler.CreateContext(t.Context()), r.attributes, reviewed,
		cel.OptionalVariableBindings{Authorizer: new(questions)}, nil, celconfig.RuntimeCELCostBudget)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(evaluations, func(e cel.EvaluationResult) bool { return e.Error != nil || e.EvalResult == types.False })
}

// questions counts the questions to the authorizer, which allows nothing.
type questions int

// Authorize implements authorizer.Authorizer.
func (q *questions) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	*q++
	return authorizer.DecisionNoOpinion, "", nil
}
