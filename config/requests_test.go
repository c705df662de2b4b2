package config_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/yaml"
)

// write is a request to one of the policies of sudo on request. old and now are objects in YAML: none on CREATE and on DELETE.
type write struct {
	by, kind, namespace string
	old, now            string
	may                 string // the verb that the authorizer allows
}

const (
	theOperator = "system:serviceaccount:warren-system:warren-controller-manager"
	pending     = `{metadata: {name: r}, spec: {user: rita, decisions: []}}`
	owned       = `ownerReferences: [{apiVersion: batch/v1, kind: Job, name: mine, uid: u}]`
	grantedTo   = `labels: {tenancy.warren.dev/access: request, tenancy.warren.dev/tenant: ledger}`
	zero        = `completions: 0, parallelism: 0, ttlSecondsAfterFinished: 60`
)

func decided(user, verdict string) string {
	return strings.Replace(pending, "[]", "[{user: "+user+", verdict: "+verdict+"}]", 1)
}

func TestPoliciesOfSudoOnRequest(t *testing.T) {
	const anything, makes = "namespace warren-sudo has the timers", "in warren-sudo the operator makes timers"
	binds := func(subject string) string { return `{metadata: {name: b}, subjects: [` + subject + `]}` }
	limits := func(key string) string { return `{metadata: {name: q}, spec: {hard: {` + key + `: "0"}}}` }
	role := func(meta string) string {
		return `{metadata: {name: mine, ` + grantedTo + `, ` + meta + `}, rules: [{apiGroups: [""], resources: [serviceaccounts], ` +
			`resourceNames: [ledger], verbs: [impersonate]}]}`
	}
	job := func(meta, spec string) string {
		return `{metadata: {name: mine, ` + grantedTo + meta + `}, spec: {` + spec + `}}`
	}
	token := `{metadata: {name: t, annotations: {a: weak}}, type: kubernetes.io/service-account-token}`
	for name, c := range map[string]struct {
		policy string
		write  write
		says   string // "" where the policy allows the request
	}{
		"REQ-X21 whoever is eligible alone decides on no request": {"sudo-requests",
			write{by: "rob", kind: "SudoRequest", old: pending, now: decided("rob", "Deny")}, "only approvers and managers decide"},
		"whoever may decide": {"sudo-requests",
			write{by: "lena", kind: "SudoRequest", old: pending, now: decided("lena", "Approve"), may: "decide"}, ""},
		"whoever asked ends": {"sudo-requests", write{by: "rita", kind: "SudoRequest", old: pending, now: decided("rita", "End")}, ""},
		"whoever asked approves": {"sudo-requests",
			write{by: "rita", kind: "SudoRequest", old: pending, now: decided("rita", "Approve"), may: "decide"}, "nobody decides on his own"},
		"in another name": {"sudo-requests",
			write{by: "lena", kind: "SudoRequest", old: pending, now: decided("mia", "Approve"), may: "decide"}, "bears the name"},
		"a new one": {"sudo-requests", write{by: "rita", kind: "SudoRequest", now: pending}, ""},
		"REQ-X24 nobody makes a request large by annotations": {"sudo-requests", write{by: "rita", kind: "SudoRequest", old: pending,
			now: strings.Replace(pending, "name: r", "name: r, annotations: {a: "+strings.Repeat("x", 9000)+"}", 1)}, "at most 8 annotations"},
		"a deletion": {"sudo-requests", write{by: "rita", kind: "SudoRequest", old: pending}, "kept as a record"},
		"REQ-X14 the temporary sudoer changes no Secret with a token": {"temporary-sudo",
			write{by: "system:serviceaccount:warren-sudo:ledger", kind: "Secret", old: token, now: strings.Replace(token, "weak", "strong", 1)},
			"ends with its time"},
		"another Secret": {"temporary-sudo", write{by: "system:serviceaccount:warren-sudo:ledger", kind: "Secret",
			now: `{metadata: {name: s}, type: Opaque}`}, ""},
		"REQ-X30 whoever may write Jobs changes no timer": {"sudo-timers",
			write{by: "jobs", kind: "Job", namespace: "warren-sudo", old: job("", zero), now: job("", "completions: 0")}, anything},
		"REQ-X31 nobody makes a service account in warren-sudo": {"sudo-timers",
			write{by: "jobs", kind: "ServiceAccount", namespace: "warren-sudo", now: `{metadata: {name: ledger}}`}, anything},
		"a cluster admin ends": {"sudo-timers", write{by: "clara", kind: "Job", namespace: "warren-sudo", old: job("", zero), may: "update"}, ""},
		"the controller manager": {"sudo-timers",
			write{by: "system:kube-controller-manager", kind: "Job", namespace: "warren-sudo", old: job("", zero)}, ""},
		"REQ-X33 the operator makes no timer that another controller completes": {"operator-cage-objects", write{by: theOperator, kind: "Job",
			namespace: "warren-sudo", now: job("", zero+", managedBy: example.com/mine")}, makes},
		"REQ-X33 the operator makes no timer with a finalizer": {"operator-cage-objects", write{by: theOperator, kind: "Job",
			namespace: "warren-sudo", now: job(", finalizers: [example.com/held]", zero)}, makes},
		"a timer":      {"operator-cage-objects", write{by: theOperator, kind: "Job", namespace: "warren-sudo", now: job("", zero)}, ""},
		"a Role of it": {"operator-cage-objects", write{by: theOperator, kind: "Role", namespace: "warren-sudo", now: role(owned)}, ""},
		"REQ-X34 the operator makes no Role whose owner nobody can look up": {"operator-cage-objects", write{by: theOperator, kind: "Role",
			namespace: "warren-sudo", now: role(strings.Replace(owned, "batch/v1", "nowhere.example.com/v1", 1))}, makes},
		"REQ-X37 nobody binds a service account of warren-sudo": {"sudo-subjects", write{by: "carol", kind: "RoleBinding",
			now: binds("{kind: ServiceAccount, namespace: warren-sudo, name: future}")}, "ServiceAccount future is what sudoers become"},
		"REQ-X37 nobody binds the user name of a temporary sudoer": {"sudo-subjects", write{by: "carol", kind: "RoleBinding",
			now: binds(`{kind: User, name: "system:serviceaccount:warren-sudo:future"}`)}, "is what sudoers become"},
		"another service account": {"sudo-subjects", write{by: "carol", kind: "RoleBinding",
			now: binds("{kind: ServiceAccount, namespace: ci, name: future}")}, ""},
		"REQ-X16 no quota of a tenant limits SudoRequests": {"rail-quotas", write{by: "bob", kind: "ResourceQuota",
			now: limits("count/sudorequests.tenancy.warren.dev")}, "may not limit"},
		"pods": {"rail-quotas", write{by: "bob", kind: "ResourceQuota", now: limits("pods")}, ""},
		"REQ-X58 a cluster admin ends a right by its RoleBinding": {"copy",
			write{by: "clara", kind: "RoleBinding", namespace: "warren-sudo", old: role(owned), may: "update"}, ""},
		"somebody else": {"copy", write{by: "owen", kind: "RoleBinding", namespace: "warren-sudo", old: role(owned)}, "by the operator alone"},
		"elsewhere":     {"copy", write{by: "clara", kind: "RoleBinding", old: role(owned), may: "update"}, "by the operator alone"},
	} {
		t.Run(name, func(t *testing.T) {
			all := policies(t)
			i := slices.IndexFunc(all, func(p admissionregistrationv1.ValidatingAdmissionPolicy) bool { return p.Name == "warren-"+c.policy })
			if says := c.write.judge(t, &all[i]); (c.says == "") != (says == "") || !strings.Contains(says, c.says) {
				t.Errorf("says %q, want %q", says, c.says)
			}
		})
	}
}

// groupsOf are the API groups of the kinds.
var groupsOf = map[string]string{"SudoRequest": "tenancy.warren.dev", "Job": "batch", "Role": "rbac.authorization.k8s.io",
	"RoleBinding": "rbac.authorization.k8s.io"}

// judge returns the message with which a policy refuses a request; "" if it allows it.
func (w *write) judge(t *testing.T, p *admissionregistrationv1.ValidatingAdmissionPolicy) string {
	t.Helper()
	resource := schema.GroupVersionResource{Group: groupsOf[w.kind], Version: "v1", Resource: strings.ToLower(w.kind) + "s"}
	kind := schema.GroupVersionKind{Group: resource.Group, Version: "v1", Kind: w.kind}
	operation := map[[2]bool]admission.Operation{{false, true}: admission.Create, {true, true}: admission.Update,
		{true, false}: admission.Delete}[[2]bool{w.old != "", w.now != ""}]
	if !slices.ContainsFunc(p.Spec.MatchConstraints.ResourceRules, func(r admissionregistrationv1.NamedRuleWithOperations) bool {
		return slices.Contains(r.APIGroups, resource.Group) && slices.Contains(r.Resources, resource.Resource) &&
			slices.Contains(r.Operations, admissionregistrationv1.OperationType(operation))
	}) {
		return ""
	}
	attributes, place := w.admit(t, kind, resource, operation)
	reviewed := cel.CreateAdmissionRequest(attributes.Attributes, metav1.GroupVersionResource(resource), metav1.GroupVersionKind(kind))
	c, bindings := compile(t, p), cel.OptionalVariableBindings{Authorizer: allows(w.may)}
	shared := c.compiler.CreateContext(t.Context())
	evaluate := func(expressions cel.ConditionEvaluator, b cel.OptionalVariableBindings) []cel.EvaluationResult {
		results, _, err := expressions.ForInput(shared, attributes, reviewed, b, place, celconfig.RuntimeCELCostBudget)
		if err != nil {
			t.Fatal(err)
		}
		return results
	}
	for _, condition := range evaluate(c.conditions, bindings) {
		if condition.Error != nil {
			t.Fatal(condition.Error)
		}
		if condition.EvalResult == types.False {
			return ""
		}
	}
	for i, validation := range evaluate(c.validations, bindings) {
		if validation.Error != nil {
			t.Fatal(p.Spec.Validations[i].Expression, validation.Error)
		}
		if validation.EvalResult != types.False {
			continue
		}
		if m := p.Spec.Validations[i]; m.MessageExpression == "" {
			return m.Message
		}
		earlier := slices.DeleteFunc(slices.Clone(p.Spec.Validations[:i]), func(v admissionregistrationv1.Validation) bool {
			return v.MessageExpression == ""
		})
		return evaluate(c.messages, cel.OptionalVariableBindings{})[len(earlier)].EvalResult.Value().(string)
	}
	return ""
}

// admit returns the request as the API server hands it to policies, with its namespace, which is the root of a tenant.
func (w *write) admit(t *testing.T, kind schema.GroupVersionKind, resource schema.GroupVersionResource, operation admission.Operation) (
	attributes *admission.VersionedAttributes, place *corev1.Namespace) {
	t.Helper()
	namespace := w.namespace
	if namespace == "" {
		namespace = "ledger"
	}
	old, now := parse(t, w.old, kind), parse(t, w.now, kind)
	attributes = &admission.VersionedAttributes{VersionedKind: kind, VersionedObject: admission.NewLazyObject(now),
		VersionedOldObject: admission.NewLazyObject(old), Attributes: admission.NewAttributesRecord(now, old, kind, namespace, "x", resource,
			"", operation, &metav1.UpdateOptions{}, false, &user.DefaultInfo{Name: w.by, Groups: []string{"system:authenticated"}})}
	place = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"tenancy.warren.dev/type": "root"},
		Annotations: map[string]string{"tenancy.warren.dev/lnamespace-uid": "u"}}}
	return attributes, place
}

func parse(t *testing.T, text string, kind schema.GroupVersionKind) runtime.Object {
	t.Helper()
	if text == "" {
		return nil
	}
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: maps.Clone(fields)}
	u.SetGroupVersionKind(kind)
	return u
}

// allows is an authorizer that allows one verb.
type allows string

// Authorize implements authorizer.Authorizer.
func (a allows) Authorize(_ context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	if a != "" && asked.GetVerb() == string(a) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}
