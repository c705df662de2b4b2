package guard

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/manifests"
)

// whole returns what the controller sees in a cluster where every policy is in force and matches all kinds served: configmaps and
// deployments.
func whole() *sight {
	s := newSight()
	for _, p := range manifests.Shipped {
		rules := []admissionregistrationv1.NamedRuleWithOperations{rule("", "configmaps"), rule("apps", "deployments", "deployments/status")}
		s.policies[p.Name] = &admissionregistrationv1.ValidatingAdmissionPolicy{
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: rules},
			},
		}
		for _, b := range p.Bindings {
			s.bindings[b.Name] = &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
				ObjectMeta: metav1.ObjectMeta{Name: manifests.Prefix + b.Name},
				Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
					PolicyName: manifests.Prefix + p.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
				},
			}
		}
	}
	s.resources = []schema.GroupResource{{Resource: "configmaps"}, {Group: "apps", Resource: "deployments"}}
	return s
}

func rule(group string, resources ...string) admissionregistrationv1.NamedRuleWithOperations {
	return admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update,
			admissionregistrationv1.Delete},
		Rule: admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources},
	}}
}

func TestGap(t *testing.T) {
	rules := func(s *sight, name string) *[]admissionregistrationv1.NamedRuleWithOperations {
		return &s.policies[name].Spec.MatchConstraints.ResourceRules
	}
	for name, c := range map[string]struct {
		spoil func(*sight)
		want  map[string]string // policy → why it has a gap
	}{
		"all in force": {func(*sight) {}, nil},
		"a policy is missing": {func(s *sight) { delete(s.policies, "source-keys") },
			map[string]string{"source-keys": "it is missing: apply config/policy"}},
		"a policy may not be read": {func(s *sight) { delete(s.policies, "copy"); s.hidden["copy"] = true },
			map[string]string{"copy": "it may not be read: apply config/rbac"}},
		"one of three bindings is missing": {func(s *sight) { delete(s.bindings, "copy-distributed") },
			map[string]string{"copy": "binding warren-copy-distributed is missing: apply config/policy"}},
		"a binding audits and warns": {func(s *sight) {
			s.bindings["tenant-limits"].Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit,
				admissionregistrationv1.Warn}
		}, map[string]string{"tenant-limits": "binding warren-tenant-limits doesn't deny (validationActions: Audit, Warn): apply config/policy"}},
		"a binding audits and denies": {func(s *sight) {
			s.bindings["tenant-limits"].Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit,
				admissionregistrationv1.Deny}
		}, nil},
		"a binding is of another policy": {func(s *sight) { s.bindings["access-names"].Spec.PolicyName = "other" },
			map[string]string{"access-names": "binding warren-access-names belongs to policy other instead: apply config/policy"}},
		"two kinds are not listed": {func(s *sight) {
			s.resources = append(s.resources, schema.GroupResource{Resource: "secrets"}, schema.GroupResource{Group: "apps", Resource: "configmaps"},
				schema.GroupResource{Resource: "secrets"})
		}, map[string]string{
			"copy": "it doesn't list configmaps.apps, secrets, which the configuration names: apply what `manager manifests " +
				"--config FILE` prints",
			"operator-cage-objects": "it doesn't list configmaps.apps, secrets, which the configuration names: apply what `manager manifests " +
				"--config FILE` prints",
		}},
		"deletions are left out": {func(s *sight) {
			(*rules(s, "operator-cage-objects"))[0].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Create,
				admissionregistrationv1.Update}
		}, map[string]string{"operator-cage-objects": "it doesn't list configmaps, which the configuration names: apply what `manager " +
			"manifests --config FILE` prints"}},
		"one version alone is listed": {func(s *sight) { (*rules(s, "copy"))[0].APIVersions = []string{"v1"} },
			map[string]string{"copy": "it doesn't list configmaps, which the configuration names: apply what `manager manifests --config FILE` " +
				"prints"}},
		"everything is listed": {func(s *sight) {
			*rules(s, "copy") = []admissionregistrationv1.NamedRuleWithOperations{rule("*", "*/*")}
			*rules(s, "operator-cage-objects") = []admissionregistrationv1.NamedRuleWithOperations{rule("*", "*")}
		}, nil},
		"a policy without rules": {func(s *sight) { s.policies["copy"].Spec.MatchConstraints = nil },
			map[string]string{"copy": "it doesn't list configmaps, deployments.apps, which the configuration names: apply what `manager manifests " +
				"--config FILE` prints"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := whole()
			c.spoil(s)
			for _, p := range manifests.Shipped {
				if got := s.findGap(p); got != c.want[p.Name] {
					t.Errorf("%s: got %q, want %q", p.Name, got, c.want[p.Name])
				}
			}
		})
	}
}

func TestOperatorOf(t *testing.T) {
	for name, c := range map[string]struct {
		condition admissionregistrationv1.MatchCondition
		want      string
	}{
		"as shipped": {admissionregistrationv1.MatchCondition{Name: "not-the-operator", Expression: "request.userInfo.username != " +
			"'system:serviceaccount:warren-system:warren-controller-manager'"}, "system:serviceaccount:warren-system:warren-controller-manager"},
		"another namespace": {admissionregistrationv1.MatchCondition{Name: "not-the-operator",
			Expression: "request.userInfo.username != 'system:serviceaccount:tenancy:warren'"}, "system:serviceaccount:tenancy:warren"},
		"another condition": {admissionregistrationv1.MatchCondition{Name: "our-name", Expression: "request.userInfo.username != 'x'"}, ""},
		"something else": {admissionregistrationv1.MatchCondition{Name: "not-the-operator",
			Expression: "!(request.userInfo.username in ['x', 'y'])"}, ""},
	} {
		p := &admissionregistrationv1.ValidatingAdmissionPolicy{}
		p.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "first", Expression: "true"}, c.condition}
		if got := operatorOf(p); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
