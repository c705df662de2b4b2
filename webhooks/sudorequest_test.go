package webhooks_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/webhooks"
)

// onRequest returns a cluster with tenant payments, in which carol and group pay-oncall may ask for sudo.
func onRequest(edit func(*v1alpha1.LNamespaceSpec)) *cluster {
	lns := build.Tenant("payments").Managers("mia", "lea").Object()
	lns.Spec.SudoRequests = &v1alpha1.SudoRequests{
		Eligible: append(build.Users("carol", "mia"), build.Group("pay-oncall")), Approvals: 1, MaxDuration: "4h"}
	if edit != nil {
		edit(&lns.Spec)
	}
	return grown(lns, build.Root("payments"))
}

func sudoRequest(user string, edit func(*v1alpha1.SudoRequestSpec)) *v1alpha1.SudoRequest {
	r := &v1alpha1.SudoRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "payments", Name: "r"},
		Spec: v1alpha1.SudoRequestSpec{User: user, Reason: "Restore the ledger", Duration: "1h", Decisions: []v1alpha1.SudoDecision{}}}
	if edit != nil {
		edit(&r.Spec)
	}
	return r
}

// made returns requests of carol that were made a while ago.
func made(n int, ago time.Duration, reason v1alpha1.Reason) (all []client.Object) {
	for i := range n {
		r := sudoRequest("carol", nil)
		r.Name, r.CreationTimestamp = fmt.Sprint("r-", reason, i), metav1.NewTime(time.Now().Add(-ago))
		r.Status.Conditions = []metav1.Condition{{Type: "Active", Status: "False", Reason: string(reason)}}
		all = append(all, r)
	}
	return all
}

func TestNewSudoRequests(t *testing.T) {
	glass := func(s *v1alpha1.SudoRequestSpec) { s.BreakGlass = true }
	alone := func(s *v1alpha1.LNamespaceSpec) { s.Managers = build.Users("mia") }
	for name, c := range map[string]struct {
		cluster *cluster
		request *v1alpha1.SudoRequest
		want    answered
	}{
		"in order": {onRequest(nil), sudoRequest("carol", nil), allowed()},
		"by a group": {onRequest(nil), sudoRequest("otto", func(s *v1alpha1.SudoRequestSpec) { s.Group = "pay-oncall" }),
			allowed()},
		"REQ-V3 a request for longer than the tenant allows is refused": {onRequest(nil),
			sudoRequest("carol", func(s *v1alpha1.SudoRequestSpec) { s.Duration = "5h" }),
			refused(403, "spec.duration", "5h is more than spec.sudoRequests.maxDuration of LNamespace payments allows: 4h")},
		"REQ-V3 a request for longer than the configuration allows is refused": {
			onRequest(nil).configured(func(c *config.OperatorConfiguration) { c.Sudo.Requests.MaxDuration.Duration = time.Minute }),
			sudoRequest("carol", nil), refused(403, "spec.duration", "1h is more than sudo.requests.maxDuration of the configuration allows: 1m")},
		"REQ-V3 a request of somebody who is not eligible is refused": {onRequest(nil), sudoRequest("zed", nil),
			refused(403, "spec.user", "zed is not in spec.sudoRequests.eligible of LNamespace payments: ask a manager for an entry")},
		"nobody is eligible": {onRequest(func(s *v1alpha1.LNamespaceSpec) { s.SudoRequests = nil }), sudoRequest("carol", nil),
			refused(403, "spec.user", "carol is not in")},
		"REQ-V3 a fourth open request of one person in a tenant is refused": {
			onRequest(nil).with(made(3, time.Hour, v1alpha1.ReasonPending)...), sudoRequest("carol", nil),
			refused(403, "carol has 3 open requests here, and sudo.requests.maxOpen is 3: end one")},
		"three of another": {onRequest(nil).with(made(3, time.Hour, v1alpha1.ReasonPending)...), sudoRequest("mia", nil), allowed()},
		"three are over":   {onRequest(nil).with(made(3, time.Hour, v1alpha1.ReasonEnded)...), sudoRequest("carol", nil), allowed()},
		"REQ-V3 a 21st request of one person in a tenant in 24 hours is refused": {
			onRequest(nil).with(made(20, 23*time.Hour, v1alpha1.ReasonEnded)...), sudoRequest("carol", nil),
			refused(403, "carol has made 20 requests here in 24 hours, and sudo.requests.maxPerDay is 20")},
		"a day later": {onRequest(nil).with(made(20, 25*time.Hour, v1alpha1.ReasonEnded)...), sudoRequest("carol", nil), allowed()},
		"REQ-V3 break-glass is refused where the tenant does not allow it": {onRequest(nil), sudoRequest("carol", glass),
			refused(403, "spec.breakGlass", "spec.sudoRequests.breakGlass of LNamespace payments forbids sudo without approval")},
		"break-glass": {onRequest(func(s *v1alpha1.LNamespaceSpec) { s.SudoRequests.BreakGlass = true; alone(s) }), sudoRequest("mia", glass),
			allowed()},
		"REQ-V5 a request that only its requester may approve gets a Warning": {onRequest(alone), sudoRequest("mia", nil),
			allowed("nobody but mia may approve, and nobody approves their own request: ask a manager for another entry of " +
				"spec.sudoRequests.approvers")},
		"nobody may approve": {onRequest(func(s *v1alpha1.LNamespaceSpec) { s.Managers = nil }), sudoRequest("carol", nil),
			allowed("nobody may approve: ask")},
		"too few may approve": {onRequest(func(s *v1alpha1.LNamespaceSpec) { s.SudoRequests.Approvals = 2 }), sudoRequest("mia", nil),
			allowed("2 approvals are needed, but only 1 people other than mia may approve")},
		"a group may approve": {onRequest(func(s *v1alpha1.LNamespaceSpec) {
			s.SudoRequests.Approvers = []v1alpha1.Subject{build.Group("pay-leads")}
		}), sudoRequest("mia", nil), allowed()},
		"no tenant": {grown(build.Root("payments")), sudoRequest("carol", nil), allowed()},
	} {
		t.Run(name, func(t *testing.T) {
			user := authenticationv1.UserInfo{Username: c.request.Spec.User}
			c.want.check(t, "", c.cluster.as(t, user, webhooks.PathSudoRequests, nil, c.request))
		})
	}
}

func TestSudoRequestDefaults(t *testing.T) {
	const otto, oncall = `{"op":"add","path":"/spec/user","value":"otto"}`, `{"op":"add","path":"/spec/group","value":"pay-oncall"}`
	for name, c := range map[string]struct {
		cluster *cluster
		request *v1alpha1.SudoRequest
		user    string
		want    []string
	}{
		"REQ-V4 the webhook fills in the requester, and the group by which they are eligible": {onRequest(nil), sudoRequest("", nil), "otto",
			[]string{otto, oncall}},
		"the group alone": {onRequest(nil), sudoRequest("otto", nil), "otto", []string{oncall}},
		"another group": {onRequest(nil), sudoRequest("otto", func(s *v1alpha1.SudoRequestSpec) { s.Group = "mine" }), "otto",
			nil},
		"by name": {onRequest(nil), sudoRequest("", nil), "carol", []string{strings.Replace(otto, "otto", "carol", 1)}},
		"somebody else": {onRequest(nil), sudoRequest("carol", nil), "otto",
			nil},
		"no tenant": {grown(build.Root("payments")), sudoRequest("", nil), "otto", []string{otto}},
	} {
		t.Run(name, func(t *testing.T) {
			user := authenticationv1.UserInfo{Username: c.user, Groups: []string{"devs", "pay-oncall"}}
			if c.user == "carol" {
				user.Groups = nil
			}
			comparePatches(t, c.want, c.cluster.as(t, user, webhooks.PathSudoRequestDefaults, nil, c.request))
		})
	}
}

func comparePatches(t *testing.T, want []string, answer admission.Response) {
	t.Helper()
	if !answer.Allowed {
		t.Fatal(answer.Result)
	}
	var got []string
	for _, patch := range answer.Patches {
		got = append(got, patch.Json())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("patches (-want +got):\n%s", diff)
	}
}

func TestGroupsOfDecisions(t *testing.T) {
	led := func(s *v1alpha1.LNamespaceSpec) {
		s.SudoRequests.Approvers = []v1alpha1.Subject{build.Group("pay-leads")}
	}
	owned := func(s *v1alpha1.LNamespaceSpec) { led(s); s.Managers = []v1alpha1.Subject{build.Group("pay-owners")} }
	const leads, owners = `{"op":"add","path":"/spec/decisions/1/group","value":"pay-leads"}`,
		`{"op":"add","path":"/spec/decisions/1/group","value":"pay-owners"}`
	decision := func(user, group string, verdict v1alpha1.SudoVerdict) v1alpha1.SudoDecision {
		return v1alpha1.SudoDecision{User: user, Group: group, Verdict: verdict}
	}
	for name, c := range map[string]struct {
		edit     func(*v1alpha1.LNamespaceSpec)
		groups   []string
		decision v1alpha1.SudoDecision
		want     []string
	}{
		"REQ-V6 the webhook fills in the group by which an approver decides": {led, []string{"devs", "pay-leads"},
			decision("lea", "", v1alpha1.SudoApprove), []string{leads}},
		"REQ-V6 a manager of a group denies by that group": {owned, []string{"pay-owners"}, decision("lea", "", v1alpha1.SudoDeny),
			[]string{owners}},
		"a manager of a group approves nothing": {owned, []string{"pay-owners"}, decision("lea", "", v1alpha1.SudoApprove), nil},
		"a manager by name denies":              {led, []string{"pay-leads"}, decision("mia", "", v1alpha1.SudoDeny), nil},
		"with a group":                          {led, []string{"pay-leads"}, decision("lea", "devs", v1alpha1.SudoApprove), nil},
		"of somebody else":                      {led, []string{"pay-leads"}, decision("otto", "", v1alpha1.SudoApprove), nil},
	} {
		t.Run(name, func(t *testing.T) {
			old := sudoRequest("carol", func(s *v1alpha1.SudoRequestSpec) {
				s.Decisions = []v1alpha1.SudoDecision{decision("lea", "", v1alpha1.SudoEnd)}
			})
			cluster := onRequest(c.edit).with(old)
			now := old.DeepCopy()
			now.Spec.Decisions = append(now.Spec.Decisions, c.decision)
			user := authenticationv1.UserInfo{Username: "lea", Groups: c.groups}
			comparePatches(t, c.want, cluster.as(t, user, webhooks.PathSudoRequestDefaults, old, now))
		})
	}
	t.Run("of a request that does not exist", func(t *testing.T) {
		old := sudoRequest("carol", nil)
		refused(503, "try again").check(t, "", onRequest(led).as(t, alice, webhooks.PathSudoRequestDefaults, old, old.DeepCopy()))
	})
}
