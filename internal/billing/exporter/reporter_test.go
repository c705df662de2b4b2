package exporter

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
)

func TestNeedsWrite(t *testing.T) {
	of := func(c *metav1.Condition, generation int64) *metav1.Condition {
		c.ObservedGeneration = generation
		return c
	}
	yes := func() *metav1.Condition { return exported(true, v1alpha1.ReasonExported, "all") }
	no := func() *metav1.Condition { return exported(false, v1alpha1.ReasonWarehouseUnavailable, "away") }
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
		t.Run("BILL-54 "+name, func(t *testing.T) {
			if got := needsWrite(c.was, c.want, c.generation); got != c.say {
				t.Error(got)
			}
		})
	}
}

func TestUnsavedIsNotExported(t *testing.T) {
	t.Run("BILL-54 a generation whose changes the outbox hasn't taken yet is said nothing of", func(t *testing.T) {
		s := situation{compared: true, unsaved: map[string]bool{"u": true}}
		if c := s.condition("u", 0); c != nil {
			t.Errorf("%+v", c)
		}
		if c := s.condition("other", 0); c == nil || c.Status != metav1.ConditionTrue {
			t.Errorf("another tenant: %+v", c)
		}
	})
}

func TestLastRefusalIsReported(t *testing.T) {
	t.Run("BILL-23 of several refused changes of a tenant, the condition has the reason of the last one", func(t *testing.T) {
		k, now := kept(t)
		outbox, err := billing.OpenOutbox(t.Context(), filepath.Join(t.TempDir(), "outbox.db"), 10, now)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = outbox.Close() })
		for _, reason := range []string{"the first refusal", "the second refusal", "the last refusal"} {
			now.SetTime(now.Now().Add(time.Minute))
			event := billing.Event{Cluster: "c", Namespace: "pay", NamespaceUID: "n1", Tenant: "pay", TenantUID: "t1", Generation: 1,
				Op: billing.Set, CostCenter: reason, EffectiveAt: now.Now()}
			if err := outbox.Put(t.Context(), event.Sealed()); err != nil {
				t.Fatal(err)
			}
			queued, err := outbox.Next(t.Context(), 1)
			if err != nil || len(queued) != 1 {
				t.Fatalf("%d events, error %v", len(queued), err)
			}
			if err := outbox.Park(t.Context(), queued[0], errors.New(reason)); err != nil {
				t.Fatal(err)
			}
		}
		s, err := (&reporter{outbox: outbox, keeper: k, clock: now}).readSituation(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c := s.condition("t1", 0); c == nil || !strings.Contains(c.Message, "the last refusal") {
			t.Errorf("%+v", c)
		}
	})
}
