package sudo

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

func TestKillAtEachWriteMakesOneGrant(t *testing.T) {
	for kill := range 7 {
		for _, down := range []time.Duration{time.Second, 9 * time.Minute, time.Hour} {
			m := asked(decide("mia", v1alpha1.SudoApprove))
			for range kill {
				m.step(t)
			}
			m.wait(down)
			for end := noon.Add(2 * time.Hour); m.Now.Before(end); m.wait(time.Second) {
				m.settle(t)
				if m.Binding != nil && m.Request.Status.StartTime != nil &&
					m.Now.After(m.Request.Status.StartTime.Add(10*time.Minute+2*time.Second)) {
					t.Fatalf("killed at %d for %s: in force at %s", kill, down, m.Now)
				}
			}
			if m.timers > 1 || m.active() != "False TimeOver" {
				t.Errorf("killed at %d for %s: %d timers, %s", kill, down, m.timers, m.active())
			}
		}
	}
}

func TestTimerThatDoesNotRunGrantsNothing(t *testing.T) {
	m := asked(decide("mia", v1alpha1.SudoApprove))
	m.managerDown = true
	m.settle(t).wait(timerStarts + time.Second).settle(t)
	if m.active() != "False TimerMissing" || m.Role != nil || m.Binding != nil {
		t.Errorf("%s, role %v, binding %v", m.active(), m.Role, m.Binding)
	}
	m.managerDown = false
	m.wait(time.Hour).settle(t)
	if want := noon.Add(time.Hour + timerStarts + time.Second + 10*time.Minute); m.active() != "True Granted" ||
		!m.Request.Status.EndTime.Time.Equal(want) {
		t.Errorf("%s, ends %s, want %s", m.active(), m.Request.Status.EndTime, want)
	}
}

func TestRefusedWriteIsReported(t *testing.T) {
	for _, act := range []Act{CreateTimer, CreateRole, CreateBinding} {
		t.Run("REQ-G14 a write of a grant that the API server refuses is reported with its answer, and tried again: "+string(act),
			func(t *testing.T) {
				m := asked(decide("mia", v1alpha1.SudoApprove))
				m.refuses = act
				m.settle(t)
				if m.active() != "False TimerMissing" || !strings.Contains(m.message(), "policy no-jobs denied it") || m.Binding != nil {
					t.Errorf("%s: %s, binding %v", m.active(), m.message(), m.Binding)
				}
				m.refuses = Nothing
				if m.wait(time.Minute).settle(t); m.active() != "True Granted" {
					t.Errorf("allowed again: %s: %s", m.active(), m.message())
				}
			})
	}
}

func TestBlindOperatorSaysSo(t *testing.T) {
	const why = "namespace warren-sudo is not the operator's"
	t.Run("REQ-G15 while the operator can't read what it has made, nothing is granted, and the request says so", func(t *testing.T) {
		m := asked(decide("mia", v1alpha1.SudoApprove))
		m.Blind = why
		if m.settle(t); m.active() != "False TimerMissing" || !strings.Contains(m.message(), why) || m.timers > 0 {
			t.Errorf("%s: %s, %d timers", m.active(), m.message(), m.timers)
		}
		m.Blind = ""
		if m.settle(t); m.active() != "True Granted" {
			t.Errorf("Active is %s", m.active())
		}
		m.Blind = why
		if m.settle(t); m.active() != "True Granted" {
			t.Errorf("a right that may be in force: %s", m.active())
		}
	})
}

func TestApprovalThatIsLostGivesUpTheStart(t *testing.T) {
	for begun := range 4 { // before startTime, the timer, its UID, the role
		m := asked(decide("mia", v1alpha1.SudoApprove))
		for range begun {
			m.step(t)
		}
		m.Tenant.Spec.Managers = user("lea")
		m.settle(t)
		if m.active() != "False Pending" || m.Timer != nil || m.Request.Status.StartTime != nil || m.Request.Status.Timer != "" {
			t.Errorf("begun %d: %+v, timer %v", begun, m.Request.Status, m.Timer)
		}
		m.wait(time.Hour).decide("lea", v1alpha1.SudoApprove)
		if m.settle(t); m.active() != "True Granted" || !m.Request.Status.EndTime.Time.Equal(noon.Add(70*time.Minute)) {
			t.Errorf("begun %d, approved again: %+v", begun, m.Request.Status)
		}
	}
}

func TestFinishedRequestStaysSoUntilItIsDeleted(t *testing.T) {
	t.Run("REQ-H2 a finished request is kept for historyFor, whatever is decided afterwards, and deleted then", keepsHistory)
}

func keepsHistory(t *testing.T) {
	m := asked(decide("lea", v1alpha1.SudoDeny)).settle(t)
	m.Request.Spec.Decisions = []v1alpha1.SudoDecision{decide("mia", v1alpha1.SudoApprove)}
	if m.settle(t); m.active() != "False Denied" {
		t.Errorf("Active is %s", m.active())
	}
	m.wait(m.Limits.HistoryFor - time.Second).settle(t)
	if m.Request == nil {
		t.Fatal("deleted before its time")
	}
	if m.wait(time.Second).settle(t); m.Request != nil {
		t.Error("the request is kept")
	}
}

func TestTimerThatIsLateGrantsNothing(t *testing.T) {
	m := asked(decide("mia", v1alpha1.SudoApprove))
	for range 3 { // startTime, the timer, its UID
		m.step(t)
	}
	m.managerDown = true
	m.wait(10 * time.Minute).settle(t)
	if m.Role != nil || m.Binding != nil {
		t.Errorf("role %v, binding %v", m.Role, m.Binding)
	}
	if m.wait(grace).settle(t); m.active() != "False TimeOver" || m.Timer != nil {
		t.Errorf("Active is %s, timer %v", m.active(), m.Timer)
	}
}

func TestOneOfSeveralRequestsOfOneSecondIsOlder(t *testing.T) {
	made := func(uid string, after time.Duration, reported bool) *v1alpha1.SudoRequest {
		r := &v1alpha1.SudoRequest{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), CreationTimestamp: metav1.NewTime(noon.Add(after))}}
		if reported {
			meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{Type: "Active", Status: "False", Reason: "Pending"})
		}
		return r
	}
	for name, tc := range map[string]struct {
		one, than *v1alpha1.SudoRequest
		want      bool
	}{
		"an earlier one":               {made("b", 0, false), made("a", time.Second, true), true},
		"a later one":                  {made("a", time.Second, true), made("b", 0, false), false},
		"a reported one of one second": {made("b", 0, true), made("a", 0, false), true},
		"an unreported one":            {made("a", 0, false), made("b", 0, true), false},
		"by UID":                       {made("a", 0, true), made("b", 0, true), true},
		"itself":                       {made("a", 0, true), made("a", 0, true), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsOlder(tc.one, tc.than); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestLaterRequestsDoNotPushOutAnAcceptedOne(t *testing.T) {
	m := asked().settle(t)
	m.Older = make([]v1alpha1.SudoRequest, 3)
	if m.settle(t); m.active() != "False Pending" {
		t.Errorf("Active is %s", m.active())
	}
}

func TestFloodOfOneSecond(t *testing.T) {
	t.Run("REQ-V7 of thirty requests of one person in one second three stay open, in whatever order they are looked at", func(t *testing.T) {
		for seed := range uint64(50) {
			all := make([]v1alpha1.SudoRequest, 30)
			for i := range all {
				all[i] = *asked().Request
				all[i].UID = types.UID(fmt.Sprintf("%02d", i))
			}
			for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(all)) {
				m := asked()
				m.Request = &all[i]
				for j := range all {
					if IsOlder(&all[j], &all[i]) {
						m.Older = append(m.Older, all[j])
					}
				}
				m.settle(t)
			}
			open := 0
			for i := range all {
				if !IsFinished(&all[i]) {
					open++
				}
			}
			if open != 3 {
				t.Fatalf("seed %d: %d are open", seed, open)
			}
		}
	})
}
