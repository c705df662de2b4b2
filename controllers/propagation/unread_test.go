package propagation

import (
	"testing"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// After a start, copies in mode create count by the size of their source, which must be read for that.
func TestLimitCountsUnreadSources(t *testing.T) {
	limit := int64(1000)
	f := forest.New(forest.Rules{Limits: v1alpha1.Limits{Bytes: &limit}}).
		WithNamespace(&forest.Namespace{Name: "acme", UID: "acme", Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}}).
		WithNamespace(&forest.Namespace{Name: "a", UID: "a", Labels: map[string]string{v1alpha1.LabelParent: "acme"}})
	tb := newTables(f, propagate.Rules{}, newBodies())
	tb.setKind(secretKind.GroupKind(), propagate.OptIn, true)
	w := tb.in.world
	w.PutSource(secretsIn("acme"), &propagate.Source{UID: "1", Mode: v1alpha1.ModeCreate, Created: 1})
	hash := propagate.Hash{Mode: v1alpha1.ModeCreate, Place: propagate.PlaceOf(secretsIn("a"), "acme"), Content: "x"}
	w.PutCopy(secretsIn("a"), &propagate.Copy{Ours: true, From: "acme", UID: "c", ResourceVersion: "1", Hash: hash})
	young := secretsIn("acme")
	young.Name = "young"
	w.PutSource(young, &propagate.Source{UID: "2", Mode: v1alpha1.ModeUpdate, Created: 2, Content: "y", Size: 600})
	s := &sources{facts: facts{tb}}
	if !s.isNeeded(secretsIn("acme")) {
		t.Error("the source is not read")
	}
	w.NoteContent(secretsIn("acme"), w.Sources.At(secretsIn("acme")), "x", 0, 600)
	if got := w.Plan(young.At("a")).Reason; got != v1alpha1.ReasonLimitExceeded {
		t.Errorf("reason %q when 600 of 1000 bytes are used up, and 600 more are wanted", got)
	}
}
