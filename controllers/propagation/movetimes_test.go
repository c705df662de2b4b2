package propagation

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/view"
)

func TestMoves(t *testing.T) {
	below := func(name, parent string) *forest.Namespace {
		return &forest.Namespace{Name: name, UID: "uid-" + name, Labels: map[string]string{v1alpha1.LabelParent: parent}}
	}
	at := func(namespace string) propagate.Slot {
		return propagate.Slot{Kind: schema.GroupKind{Kind: "Secret"}, Namespace: namespace, Name: "s"}
	}
	plan := func(slot propagate.Slot) propagate.Action {
		return map[string]propagate.Action{"x": {Verb: propagate.Create}, "y": {Reason: v1alpha1.ReasonWaitingForRemoval}}[slot.Namespace]
	}
	forestOf := func(namespaces ...*forest.Namespace) *forest.Snapshot {
		s := forest.New(forest.Rules{})
		for _, root := range []string{"a", "b"} {
			s = s.WithNamespace(&forest.Namespace{Name: root, UID: "uid-" + root, Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}})
		}
		for _, n := range namespaces {
			s = s.WithNamespace(n)
		}
		return s
	}
	before := forestOf(below("x", "a"), below("y", "x"), below("z", "a"))
	after := forestOf(below("x", "b"), below("y", "x"), below("z", "a"))
	change := view.Change{Old: before, New: after, Namespaces: []string{"x", "y", "z"}}
	start := time.Now()
	m := moves{}
	expect := func(what string, ended []time.Time, want int) {
		t.Helper()
		if len(ended) != want || want > 0 && !ended[0].Equal(start) {
			t.Fatalf("%s: got %v, want %d", what, ended, want)
		}
	}

	m.begin(view.Change{Old: before, New: before, Namespaces: []string{"x"}}, start)
	if len(m) != 0 {
		t.Fatal("a namespace that stays is on no move")
	}
	m.begin(change, start)
	if len(m) != 1 || len(m["x"].next) != 2 {
		t.Fatalf("got %v, want x with itself and y", m)
	}
	expect("a namespace beside it", m.looked("z", []propagate.Slot{at("z")}, plan), 0)
	expect("y is yet to be looked at", m.looked("x", []propagate.Slot{at("x"), at("right")}, plan), 0)
	expect("two are to be written", m.looked("y", []propagate.Slot{at("y")}, plan), 0)
	expect("one is left", m.answered(at("x")), 0)
	expect("an answer counts once", m.answered(at("x")), 0)
	expect("the last", m.answered(at("y")), 1)

	m.begin(change, start)
	m.looked("x", nil, plan)
	expect("nothing to write", m.looked("y", []propagate.Slot{at("right")}, plan), 1)

	m.begin(change, start)
	m.begin(view.Change{Old: after, New: after.WithoutNamespace("x"), Namespaces: []string{"x"}}, start)
	if len(m) != 0 {
		t.Fatal("one that is gone goes nowhere")
	}
}
