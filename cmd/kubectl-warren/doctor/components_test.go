package doctor

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/warren-tenancy/warren/internal/manifests"
)

func TestJudgeComponents(t *testing.T) {
	const operator = "system:serviceaccount:warren-system:warren-controller-manager"
	policy := func(name string, variables ...string) admissionv1.ValidatingAdmissionPolicy {
		p := admissionv1.ValidatingAdmissionPolicy{}
		p.Name = manifests.Prefix + name
		p.Spec.MatchConditions = []admissionv1.MatchCondition{{Name: manifests.TheOperator,
			Expression: "request.userInfo.username == '" + operator + "'"}}
		for _, v := range variables {
			p.Spec.Variables = append(p.Spec.Variables, admissionv1.Variable{Name: v})
		}
		return p
	}
	bound := func(names ...string) (all []admissionv1.ValidatingAdmissionPolicyBinding) {
		for _, name := range names {
			b := admissionv1.ValidatingAdmissionPolicyBinding{}
			b.Name, b.Spec.PolicyName = manifests.Prefix+name, manifests.Prefix+name
			b.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Deny}
			all = append(all, b)
		}
		return all
	}
	strict, rules := policy("strict-placement"), policy("distribution")
	closed, copies := policy("operator-cage-distribution"), policy("operator-cage-distribution", "new", "handedBack")
	overwrite := policy("operator-cage-distribution", "new", "handedBack", "takenOver")
	both := bound("strict-placement", "distribution")
	for name, c := range map[string]struct {
		policies             []admissionv1.ValidatingAdmissionPolicy
		bindings             []admissionv1.ValidatingAdmissionPolicyBinding
		strict, distribution Status
		says                 string
	}{
		"overlay standard":         {[]admissionv1.ValidatingAdmissionPolicy{strict, closed}, both, OK, OK, "not installed"},
		"without strict-placement": {[]admissionv1.ValidatingAdmissionPolicy{closed}, both, Warning, OK, "not installed"},
		"with distribution": {[]admissionv1.ValidatingAdmissionPolicy{strict, copies, rules}, both, OK, OK,
			"need component distribution-overwrite, which is not installed"},
		"with distribution-overwrite": {[]admissionv1.ValidatingAdmissionPolicy{strict, overwrite, rules}, both, OK, OK,
			"may take over any Secret or ConfigMap"},
		"its policy is gone": {[]admissionv1.ValidatingAdmissionPolicy{strict, copies}, both, OK, Error,
			"warren-distribution is missing"},
		"its policy is bound to nobody": {[]admissionv1.ValidatingAdmissionPolicy{strict, copies, rules}, bound("strict-placement"), OK, Error,
			"no binding of this policy denies"},
		"the cage of standard came again": {[]admissionv1.ValidatingAdmissionPolicy{strict, closed, rules}, both, OK, Error,
			"nothing is distributed"},
		"no policy at all": {nil, nil, Warning, OK, "not installed"},
	} {
		checks := checkComponents(c.policies, c.bindings, operator)
		if checks[0].Status != c.strict || checks[1].Status != c.distribution || !strings.Contains(checks[1].Message, c.says) {
			t.Errorf("%s: %+v", name, checks)
		}
	}
}
