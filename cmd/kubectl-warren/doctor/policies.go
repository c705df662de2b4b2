package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/manifests"
)

// applyAgain is the advice if a shipped object, such as a policy, is missing or differs.
const applyAgain = "apply Warren's manifests again (make deploy)"

func (p Patient) checkPolicies(ctx context.Context) []Check {
	policies, bindings := &admissionv1.ValidatingAdmissionPolicyList{}, &admissionv1.ValidatingAdmissionPolicyBindingList{}
	err := p.API.List(ctx, policies)
	if err == nil {
		err = p.API.List(ctx, bindings)
	}
	if err != nil {
		return []Check{warnOfFailedList("policies", "the policies and their bindings", err)}
	}
	var checks []Check
	for _, e := range manifests.Shipped {
		checks = append(checks, checkPolicy(e, policies.Items, bindings.Items, v1alpha1.OperatorUser(p.Namespace)))
	}
	checks = append(checks, checkComponents(policies.Items, bindings.Items, v1alpha1.OperatorUser(p.Namespace))...)
	return append(checks, p.checkRequests(ctx, policies.Items, bindings.Items))
}

// checkPolicy checks that the policy is in force: it exists, has failurePolicy Fail, names the operator, and is bound
// with action Deny.
func checkPolicy(e manifests.Policy, policies []admissionv1.ValidatingAdmissionPolicy,
	bindings []admissionv1.ValidatingAdmissionPolicyBinding, operator string) Check {
	name := "policy/" + e.Name
	policy := findPolicy(policies, e.Name)
	if policy == nil {
		return failOf(name, "policy "+manifests.Prefix+e.Name+" is missing", applyAgain)
	}
	if f := policy.Spec.FailurePolicy; f != nil && *f != admissionv1.Fail {
		return failOf(name, fmt.Sprintf("failurePolicy is %s: an error in the policy lets requests pass", *f), applyAgain)
	}
	if named := identityExpression(policy, e.Identity); e.Identity != "" && !strings.Contains(named, "'"+operator+"'") {
		return failOf(name, fmt.Sprintf("it doesn't name %s as the operator; its match condition is: %s", operator, named),
			"run the operator as the account that the policies name, or build the manifests for its namespace")
	}
	if wrong := bindingProblem(e, bindings); wrong != "" {
		return failOf(name, wrong, applyAgain)
	}
	if t := policy.Status.TypeChecking; t != nil && len(t.ExpressionWarnings) > 0 {
		return warnOf(name, "the API server warns about expressions of the policy: "+firstLine(t.ExpressionWarnings[0].Warning),
			"compare the versions of Warren and Kubernetes")
	}
	return passOf(name, "in force")
}

// identityExpression returns the expression of the match condition called name; "nothing" if there is none.
func identityExpression(policy *admissionv1.ValidatingAdmissionPolicy, name string) string {
	for _, c := range policy.Spec.MatchConditions {
		if c.Name == name {
			return c.Expression
		}
	}
	return "nothing"
}

// bindingProblem describes what is wrong with the bindings of the policy; empty if nothing is.
func bindingProblem(e manifests.Policy, bindings []admissionv1.ValidatingAdmissionPolicyBinding) string {
	for _, expected := range e.Bindings {
		mark := expected.Mark
		i := slices.IndexFunc(bindings, func(b admissionv1.ValidatingAdmissionPolicyBinding) bool {
			return b.Spec.PolicyName == manifests.Prefix+e.Name && b.Spec.ParamRef == nil && slices.Contains(b.Spec.ValidationActions,
				admissionv1.Deny) &&
				equality.Semantic.DeepEqual(b.Spec.MatchResources, matchesEverything(mark))
		})
		if i >= 0 {
			continue
		}
		if mark == "" {
			return "no binding of this policy denies in all namespaces: it is missing, narrowed, or has only action Audit or Warn"
		}
		return "no binding of this policy denies for objects with label " + mark +
			": it is missing, narrowed, or has only action Audit or Warn"
	}
	return ""
}

// matchesEverything returns the matchResources of a binding for all objects, which is nil, or, if mark is not "", for
// all objects with the label mark. The latter has the empty selectors that the API server fills in.
func matchesEverything(mark string) *admissionv1.MatchResources {
	if mark == "" {
		return nil
	}
	equivalent := admissionv1.Equivalent
	return &admissionv1.MatchResources{
		MatchPolicy:       &equivalent,
		NamespaceSelector: &metav1.LabelSelector{},
		ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: mark, Operator: metav1.LabelSelectorOpExists},
		}},
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
