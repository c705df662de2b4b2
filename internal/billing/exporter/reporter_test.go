package exporter

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
)

func TestNeedsWrite(t *testing.T) {
	of := func(c *metav1.Condition, generation int64) *metav1.Condition {
		c.ObservedGeneration = generation
		return c
	}
	yes := func() *metav1.Condition { return newExported(true, v1alpha1.ReasonExported, "all") }
	no := func() *metav1.Condition { return newExported(false, v1alpha1.ReasonWarehouseUnavailable, "away") }
	for name, c := range map[string]struct {
		was, want  *metav1.Condition
		generation int64
		say        bool
	}{
		"nothing yet":                  {nil, yes(), 1, true},
		"said already":                 {of(yes(), 1), yes(), 1, false},
		"of an older generation":       {of(yes(), 1), yes(), 2, true},
		"away, of an older generation": {of(no(), 1), no(), 2, true},
		"away, said already":           {of(no(), 2), no(), 2, false},
		"back":                         {of(no(), 2), yes(), 2, true},
	} {
		t.Run("BILL-54 the condition is written if there is none, if its status changes, and for a new generation: "+name, func(t *testing.T) {
			if got := needsWrite(c.was, c.want, c.generation); got != c.say {
				t.Error(got)
			}
		})
	}
}

func TestConditionOfPendingChanges(t *testing.T) {
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	b := &backlog{waits: map[string]time.Time{"new": now, "old": now.Add(-time.Hour)}, refused: map[string]string{"bad": "not this one"}}
	away := errors.New("connection refused")
	for name, c := range map[string]struct {
		err  error
		want map[types.UID]string
	}{
		"BILL-54 no condition is written for a change that has just arrived; a change that waits for an hour is Pending": {nil,
			map[types.UID]string{"new": "", "old": "Pending", "bad": "InvalidData", "other": "Exported"}},
		"BILL-12 in an outage only tenants whose changes wait get WarehouseUnavailable": {away,
			map[types.UID]string{"new": "WarehouseUnavailable", "old": "WarehouseUnavailable", "bad": "InvalidData", "other": "Exported"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation{backlog: b, compared: true, err: c.err, trouble: billing.Unavailable, now: now}
			for tenant, want := range c.want {
				got := ""
				if condition := s.buildCondition(tenant, time.Minute); condition != nil {
					got = condition.Reason
				}
				if got != want {
					t.Errorf("tenant %s is told %q, wanted %q", tenant, got, want)
				}
			}
		})
	}
}

func TestRefusedDataIsReported(t *testing.T) {
	t.Run("BILL-23 the watermark does not pass a refused change, and the tenant has InvalidData; "+
		"once the ledger accepts the change, it has its original time", func(t *testing.T) {
		x := exporterOver(t, filepath.Join(t.TempDir(), "ledger.db"))
		x.see()
		x.runDue(t.Context())
		x.exec(t, "CREATE TRIGGER poison BEFORE INSERT ON ledger WHEN NEW.namespace = 'pay-7' BEGIN SELECT RAISE(ABORT, 'not this one'); END")
		changed := x.clock.Now().Add(time.Minute)
		x.clock.SetTime(changed)
		x.tracker.takeChange(&tenantFacts{name: "pay", uid: "t1", generation: 2, since: changed, costCenter: "4712"}, false)
		for range 3 {
			x.clock.SetTime(x.clock.Now().Add(10 * time.Hour))
			x.see()
			x.runDue(t.Context())
			if c := x.condition(t); c == nil || c.Reason != string(v1alpha1.ReasonInvalidData) || !strings.Contains(c.Message, "not this one") {
				t.Errorf("the tenant is told %+v", c)
			}
			if at := x.watermark(t); at.After(changed) {
				t.Errorf("complete until %s, though the change of %s is refused", at, changed)
			}
		}
		x.exec(t, "DROP TRIGGER poison")
		x.compareTwice(t)
		if got := x.tells(t); got != "True/Exported" {
			t.Errorf("once the ledger takes it, the tenant is told %s", got)
		}
		for _, p := range x.history(t) {
			if p.CostCenter == "4712" && !p.ValidFrom.Equal(changed) {
				t.Errorf("%s has the new cost center from %s, not %s", p.Namespace, p.ValidFrom, changed)
			}
		}
	})
}

// No record of the API server dates a move: until the ledger takes the change, only the exporter knows when it was.
func TestARefusedMoveKeepsItsTime(t *testing.T) {
	t.Run("BILL-23 the former tenant pays for a namespace until it has moved, although the ledger takes the change hours "+
		"later", func(t *testing.T) {
		x := exporterOver(t, filepath.Join(t.TempDir(), "ledger.db"))
		began := x.clock.Now()
		x.tracker.takeChange(&tenantFacts{name: "other", uid: "t2", generation: 1, since: began, costCenter: "bad"}, false)
		other := root("other", "o1", "", began)
		other.owner, other.Labels = "t2", map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}
		x.see()
		x.runDue(t.Context())
		x.exec(t, "CREATE TRIGGER poison BEFORE INSERT ON ledger WHEN NEW.tenant_uid = 't2' BEGIN SELECT RAISE(ABORT, 'not this one'); END")
		moved := began.Add(time.Minute)
		x.clock.SetTime(moved)
		x.tracker.takeChange(other, false)
		x.tracker.takeChange(root("pay-7", "n7", "other", began), false)
		x.see()
		x.runDue(t.Context())
		x.compareTwice(t)
		x.exec(t, "DROP TRIGGER poison")
		x.compareTwice(t)
		for _, p := range x.history(t) {
			if p.Namespace == "pay-7" && !p.ValidTo.Equal(moved) {
				t.Errorf("tenant pay pays for %s until %s, not until %s", p.Namespace, p.ValidTo, moved)
			}
		}
	})
}

// The SET of the new tenant would have ended the period of the former one. It is refused, and no second one will follow.
func TestARefusedMoveOfANamespaceThatIsDeleted(t *testing.T) {
	for name, comparison := range map[string]bool{
		"BILL-94 the former tenant pays for a namespace until it has moved, although the ledger refuses the change and the namespace " +
			"is deleted at once": false,
		"BILL-94 the former tenant pays for a namespace until it has moved, although the ledger refuses the change and the namespace " +
			"is deleted later": true,
	} {
		t.Run(name, func(t *testing.T) {
			x := exporterOver(t, filepath.Join(t.TempDir(), "ledger.db"))
			began := x.clock.Now()
			x.tracker.takeChange(&tenantFacts{name: "other", uid: "t2", generation: 1, since: began, costCenter: "bad"}, false)
			other := root("other", "o1", "", began)
			other.owner, other.Labels = "t2", map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}
			x.see()
			x.runDue(t.Context())
			x.exec(t, "CREATE TRIGGER poison BEFORE INSERT ON ledger WHEN NEW.tenant_uid = 't2' AND NEW.op = 'SET' "+
				"BEGIN SELECT RAISE(ABORT, 'not this one'); END")
			moved := began.Add(time.Minute)
			x.clock.SetTime(moved)
			x.tracker.takeChange(other, false)
			x.tracker.takeChange(root("pay-7", "n7", "other", began), false)
			x.see()
			if comparison {
				x.runDue(t.Context())
				if c := (&reporter{keeper: x.keeper, clock: x.clock}).readSituation().buildCondition("t2", time.Hour); c == nil ||
					c.Reason != string(v1alpha1.ReasonInvalidData) {
					t.Errorf("the new tenant is told %+v", c)
				}
				if at := x.watermark(t); at.After(moved) {
					t.Errorf("complete until %s, though the change of %s is refused", at, moved)
				}
			}
			x.clock.SetTime(moved.Add(10 * time.Minute))
			x.tracker.takeChange(root("pay-7", "n7", "other", began), true)
			x.see()
			x.runDue(t.Context())
			x.exec(t, "DROP TRIGGER poison") // the root of the new tenant is refused, too
			x.compareTwice(t)
			for _, p := range x.history(t) {
				if p.Namespace == "pay-7" && !p.ValidTo.Equal(moved) {
					t.Errorf("tenant pay pays for %s until %s, not until %s", p.Namespace, p.ValidTo, moved)
				}
			}
			if at := x.watermark(t); at.Before(moved.Add(time.Hour)) {
				t.Errorf("complete until %s: the watermark waits for a change that nobody can make any more", at)
			}
		})
	}
}
