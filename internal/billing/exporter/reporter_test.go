package exporter

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
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
