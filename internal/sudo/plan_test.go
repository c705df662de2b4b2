package sudo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// model is a control plane with one request. It carries out what Next plans, as the API server and the controller manager do.
type model struct {
	Facts
	managerDown bool
	refuses     Act // a write that the API server refuses
	timers      int
	acts        []Act
}

func user(names ...string) (all []v1alpha1.Subject) {
	for _, name := range names {
		all = append(all, v1alpha1.Subject{Kind: v1alpha1.SubjectUser, Name: name})
	}
	return all
}

func group(name string) v1alpha1.Subject {
	return v1alpha1.Subject{Kind: v1alpha1.SubjectGroup, Name: name}
}

func decide(who string, verdict v1alpha1.SudoVerdict) v1alpha1.SudoDecision {
	return v1alpha1.SudoDecision{User: who, Verdict: verdict}
}

// asked returns a model in which carol has asked for ten minutes, and these decisions were made.
func asked(decisions ...v1alpha1.SudoDecision) *model {
	return &model{Facts: Facts{
		Now: noon,
		Tenant: &v1alpha1.LNamespace{
			ObjectMeta: metav1.ObjectMeta{Name: "payments", UID: "tenant", CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))},
			Spec: v1alpha1.LNamespaceSpec{Managers: user("mia", "lea"), SudoRequests: &v1alpha1.SudoRequests{
				Eligible: append(user("carol"), group("pay-oncall")), Approvals: 1, MaxDuration: "4h"}},
		},
		Request: &v1alpha1.SudoRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: "payments", Name: "r", UID: "r1", Generation: 1, CreationTimestamp: metav1.NewTime(noon)},
			Spec:       v1alpha1.SudoRequestSpec{User: "carol", Reason: "restore the ledger", Duration: "10m", Decisions: decisions},
		},
		Limits: Limits{MaxDuration: 24 * time.Hour, PendingFor: 24 * time.Hour, HistoryFor: 2160 * time.Hour, MaxOpen: 3, MaxPerDay: 20,
			BreakGlass: true},
	}}
}

// manage does what the controller manager does: a timer is complete at once, and gone with what it owns at its time.
func (m *model) manage() {
	if m.managerDown || m.Timer == nil {
		return
	}
	if m.Timer.Status.CompletionTime == nil {
		at := metav1.NewTime(m.Now)
		m.Timer.Status.CompletionTime = &at
		m.Timer.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	}
	if m.Timer.Spec.TTLSecondsAfterFinished == nil {
		return
	}
	if ttl := time.Duration(*m.Timer.Spec.TTLSecondsAfterFinished) * time.Second; !m.Now.Before(m.Timer.Status.CompletionTime.Add(ttl)) {
		m.Timer, m.Role, m.Binding = nil, deleteHeld(m.Role), deleteHeld(m.Binding)
	}
}

// deleteHeld returns what is left of a deleted object: all of it, while it has finalizers.
func deleteHeld[O metav1.Object](object O) O {
	var none O
	if any(object) == any(none) || len(object.GetFinalizers()) == 0 {
		return none
	}
	object.SetDeletionTimestamp(new(metav1.NewTime(noon)))
	return object
}

// step carries out one step, and reports whether there was one.
func (m *model) step(t *testing.T) bool {
	t.Helper()
	step := Next(&m.Facts)
	if step.Act != Nothing && step.Act == m.refuses {
		step = ReportRefused(&m.Facts, step.Act, "policy no-jobs denied it")
	}
	switch m.acts = append(m.acts, step.Act); step.Act {
	case Nothing:
		m.acts = m.acts[:len(m.acts)-1]
		return false
	case WriteStatus:
		m.Request.Status = *step.Status
	case CreateTimer:
		m.timers++
		m.Timer = BuildTimer(m.Request, m.Tenant, step.Left)
		m.Timer.UID, m.Timer.CreationTimestamp = types.UID(fmt.Sprint("timer-", m.timers)), metav1.NewTime(m.Now)
	case CreateRole:
		m.Role = BuildRole(m.Request, m.Timer)
	case CreateBinding:
		m.Binding = BuildBinding(m.Request, m.Timer)
	case DeleteBinding:
		m.Binding = deleteHeld(m.Binding)
	case DeleteRole:
		m.Role = deleteHeld(m.Role)
	case DeleteTimer: // the garbage collector deletes what it owns
		m.Timer, m.Role, m.Binding = nil, deleteHeld(m.Role), deleteHeld(m.Binding)
	case DeleteRequest:
		m.Request = nil
		return false
	}
	m.manage()
	return true
}

// settle carries out all steps.
func (m *model) settle(t *testing.T) *model {
	t.Helper()
	for range 20 {
		if !m.step(t) {
			return m
		}
	}
	t.Fatalf("no end of steps: %v", m.acts)
	return nil
}

func (m *model) wait(d time.Duration) *model {
	m.Now = m.Now.Add(d)
	m.manage()
	return m
}

func (m *model) active() string {
	c := meta.FindStatusCondition(m.Request.Status.Conditions, string(v1alpha1.ConditionActive))
	if c == nil {
		return ""
	}
	return fmt.Sprint(c.Status, " ", c.Reason)
}

func (m *model) message() string {
	return meta.FindStatusCondition(m.Request.Status.Conditions, string(v1alpha1.ConditionActive)).Message
}

func TestGrantIsWrittenInOrder(t *testing.T) {
	m := asked(decide("mia", v1alpha1.SudoApprove)).settle(t)
	want := []Act{WriteStatus, CreateTimer, WriteStatus, CreateRole, CreateBinding, WriteStatus}
	if diff := cmp.Diff(want, m.acts); diff != "" {
		t.Errorf("acts (-want +got):\n%s", diff)
	}
	if m.active() != "True Granted" || !m.Request.Status.EndTime.Equal(new(metav1.NewTime(noon.Add(10*time.Minute)))) {
		t.Errorf("status: %+v", m.Request.Status)
	}
	if diff := cmp.Diff([]rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "carol"}}, m.Binding.Subjects); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
}

func TestPoliciesAreReadTwiceForAGrant(t *testing.T) {
	m := asked()
	if NeedsPolicies(&m.Facts) {
		t.Error("without an approval, the policies don't matter")
	}
	m.decide("mia", v1alpha1.SudoApprove)
	var needed []Act
	for {
		need := NeedsPolicies(&m.Facts)
		if !m.step(t) {
			break
		}
		if need {
			needed = append(needed, m.acts[len(m.acts)-1])
		}
	}
	if diff := cmp.Diff([]Act{WriteStatus, CreateBinding}, needed); diff != "" {
		t.Errorf("steps that depend on the policies (-want +got):\n%s", diff)
	}
}

func TestPolicyThatGoesBeforeTheBindingStopsTheGrant(t *testing.T) {
	m := asked(decide("mia", v1alpha1.SudoApprove))
	for m.Role == nil {
		m.step(t)
	}
	m.Gap = "gone"
	if m.settle(t); m.active() != "False PolicyMissing" || m.Binding != nil || m.Timer != nil {
		t.Errorf("Active is %s, binding %v, timer %v", m.active(), m.Binding, m.Timer)
	}
}

func TestGrantEnds(t *testing.T) {
	grant := func() *model { return asked(decide("mia", v1alpha1.SudoApprove)).settle(t) }
	for name, tc := range map[string]struct {
		change func(*model)
		want   string
	}{
		"its time is over":      {func(m *model) { m.wait(10 * time.Minute) }, "False TimeOver"},
		"carol ends it":         {func(m *model) { m.decide("carol", v1alpha1.SudoEnd) }, "False Ended"},
		"mia ends it":           {func(m *model) { m.decide("mia", v1alpha1.SudoEnd) }, "False Ended"},
		"lea denies it":         {func(m *model) { m.decide("lea", v1alpha1.SudoDeny) }, "False Denied"},
		"zed ends it":           {func(m *model) { m.decide("zed", v1alpha1.SudoEnd) }, "True Granted"},
		"zed denies it":         {func(m *model) { m.decide("zed", v1alpha1.SudoDeny) }, "True Granted"},
		"carol leaves the list": {func(m *model) { m.Tenant.Spec.SudoRequests.Eligible = nil }, "False NotEligible"},
		"mia leaves":            {func(m *model) { m.Tenant.Spec.Managers = user("lea") }, "True Granted"},
		"the tenant is gone":    {func(m *model) { m.Tenant = nil }, "False TenantReplaced"},
		"the tenant is new":     {func(m *model) { m.Tenant.CreationTimestamp = m.Request.CreationTimestamp }, "False TenantReplaced"},
		"the policy is missing": {func(m *model) { m.Gap = "gone" }, "True Granted"},
		"the timer is deleted":  {func(m *model) { m.Timer, m.Role, m.Binding = nil, nil, nil }, "False Ended"},
		"the timer is orphaned": {func(m *model) { m.Timer = nil }, "False Ended"},
		"the timer is another":  {func(m *model) { m.Timer.UID = "other" }, "False Ended"},
		"the binding is gone":   {func(m *model) { m.Binding = nil }, "False Ended"},
		"the timer is late":     {func(m *model) { m.managerDown = true; m.wait(10*time.Minute + grace) }, "False TimeOver"},
		"the timer is slow":     {func(m *model) { m.managerDown = true; m.wait(10*time.Minute + grace - time.Second) }, "True Granted"},
	} {
		t.Run(name, func(t *testing.T) {
			m := grant()
			tc.change(m)
			m.settle(t)
			if m.active() != tc.want {
				t.Errorf("Active is %s, want %s", m.active(), tc.want)
			}
			if (m.Binding == nil) != strings.HasPrefix(tc.want, "False") {
				t.Errorf("binding: %v", m.Binding)
			}
			if strings.HasPrefix(tc.want, "False") && m.Timer != nil {
				t.Errorf("the timer is left")
			}
		})
	}
}

func TestRightThatAFinalizerHoldsIsNotReportedEnded(t *testing.T) {
	const finalizer = "example.com/backup"
	for name, tc := range map[string]struct {
		hold func(*model)
		want string
	}{
		"the RoleBinding": {func(m *model) { m.Binding.Finalizers = []string{finalizer} }, "False Ended"},
		"both": {func(m *model) {
			m.Binding.Finalizers, m.Role.Finalizers = []string{finalizer}, []string{finalizer}
		}, "True NotEnded"},
	} {
		for end, change := range map[string]func(*model){
			"by carol": func(m *model) { m.decide("carol", v1alpha1.SudoEnd) },
			"by hand":  func(m *model) { m.Binding.DeletionTimestamp = new(metav1.NewTime(noon)) },
		} {
			t.Run("REQ-E12 a right whose RoleBinding a finalizer holds loses its Role, and is reported ended only when it is gone: "+name+" "+end,
				func(t *testing.T) {
					m := asked(decide("mia", v1alpha1.SudoApprove)).settle(t)
					tc.hold(m)
					change(m)
					m.settle(t)
					if m.active() != tc.want || m.Timer != nil {
						t.Errorf("Active is %s, want %s; timer %v", m.active(), tc.want, m.Timer)
					}
					if isHeld := m.Binding != nil && m.Role != nil; isHeld != strings.HasPrefix(tc.want, "True") {
						t.Errorf("the right is there: %t, and Active is %s", isHeld, m.active())
					}
					m.Binding, m.Role = nil, nil
					if m.settle(t); m.active() != "False Ended" {
						t.Errorf("without finalizers, Active is %s", m.active())
					}
				})
		}
	}
}

func (m *model) decide(who string, verdict v1alpha1.SudoVerdict) {
	m.Request.Generation++
	m.Request.Spec.Decisions = append(m.Request.Spec.Decisions, decide(who, verdict))
}

func TestRequestIsJudged(t *testing.T) {
	approve := v1alpha1.SudoApprove
	byMia := []v1alpha1.SudoDecision{decide("mia", approve)}
	twice := func(m *model) { m.Tenant.Spec.SudoRequests.Approvals = 2 }
	older := func(n int, ago time.Duration, reason v1alpha1.Reason) (all []v1alpha1.SudoRequest) {
		for range n {
			r := v1alpha1.SudoRequest{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon.Add(-ago))}}
			meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{Type: "Active", Status: "False", Reason: string(reason)})
			all = append(all, r)
		}
		return all
	}
	for name, tc := range map[string]struct {
		decisions []v1alpha1.SudoDecision
		change    func(*model)
		want      string
	}{
		"nobody approves": {nil, nil, "False Pending"},
		"carol approves": {[]v1alpha1.SudoDecision{decide("carol", approve)},
			func(m *model) { m.Tenant.Spec.Managers = user("carol") }, "False Pending"},
		"a user approves": {[]v1alpha1.SudoDecision{decide("zed", approve)}, nil, "False Pending"},
		"one of two":      {byMia, twice, "False Pending"},
		"two of two":      {[]v1alpha1.SudoDecision{decide("mia", approve), decide("lea", approve)}, twice, "True Granted"},
		"not an approver": {byMia, leads, "False Pending"},
		"by a group":      {[]v1alpha1.SudoDecision{{User: "lea", Group: "pay-leads", Verdict: approve}}, leads, "True Granted"},
		"eligible group":  {byMia, otto, "True Granted"},
		"not eligible":    {byMia, func(m *model) { m.Request.Spec.User = "otto" }, "False NotEligible"},
		"no list":         {byMia, func(m *model) { m.Tenant.Spec.SudoRequests = nil }, "False NotEligible"},
		"too long":        {nil, func(m *model) { m.Request.Spec.Duration = "5h" }, "False TooLong"},
		"too long in all": {nil, func(m *model) { m.Limits.MaxDuration = time.Minute }, "False TooLong"},
		"a fourth open":   {nil, func(m *model) { m.Older = older(3, time.Hour, v1alpha1.ReasonPending) }, "False TooMany"},
		"three over":      {nil, func(m *model) { m.Older = older(3, time.Hour, v1alpha1.ReasonEnded) }, "False Pending"},
		"a 21st that day": {nil, func(m *model) { m.Older = older(20, time.Hour, v1alpha1.ReasonEnded) }, "False TooMany"},
		"a day later":     {nil, func(m *model) { m.Older = older(20, 24*time.Hour, v1alpha1.ReasonEnded) }, "False Pending"},
		"glass":           {nil, glass, "True Granted"},
		"glass not here":  {nil, func(m *model) { m.Request.Spec.BreakGlass = true }, "False BreakGlassForbidden"},
		"glass not at all": {nil, func(m *model) {
			m.Request.Spec.BreakGlass, m.Tenant.Spec.SudoRequests.BreakGlass, m.Limits.BreakGlass = true, true, false
		}, "False BreakGlassForbidden"},
		"too old":        {byMia, func(m *model) { m.Now = noon.Add(24 * time.Hour) }, "False Expired"},
		"policy missing": {byMia, func(m *model) { m.Gap = "gone" }, "False PolicyMissing"},
	} {
		t.Run(name, func(t *testing.T) {
			m := asked(tc.decisions...)
			if tc.change != nil {
				tc.change(m)
			}
			m.settle(t)
			if m.active() != tc.want {
				t.Errorf("Active is %s, want %s: %s", m.active(), tc.want, m.message())
			}
			if strings.HasPrefix(tc.want, "False") && (m.timers > 0 || m.Binding != nil) {
				t.Errorf("a timer was made")
			}
		})
	}
}

func otto(m *model) { m.Request.Spec.User, m.Request.Spec.Group = "otto", "pay-oncall" }

func glass(m *model) { m.Request.Spec.BreakGlass, m.Tenant.Spec.SudoRequests.BreakGlass = true, true }

func leads(m *model) { m.Tenant.Spec.SudoRequests.Approvers = []v1alpha1.Subject{group("pay-leads")} }
