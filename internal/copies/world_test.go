package copies_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/copies"
)

var configMap = schema.GroupKind{Kind: "ConfigMap"}

func in(namespace string, kind schema.GroupKind, name string) copies.Slot {
	return copies.Slot{Kind: kind, Namespace: namespace, Name: name}
}

// populated returns a World with three sources: Secrets in acme and zeta, a ConfigMap in a. It has copies in modes update and create, and
// in z a stranger's object that looks like a copy.
func populated() *copies.World {
	w := world(acme(), source("acme", update), source("zeta", update), copied("a1", "acme", update), copied("b", "acme", create),
		copied("z", "acme", update, forged),
		copiedTo(in("a1", configMap, "m"), "a", update))
	w.SetKind(configMap, copies.All, true)
	w.PutSource(in("a", configMap, "m"), &copies.Source{Mode: update})
	return w
}

func TestSlots(t *testing.T) {
	w := populated()
	sources, found := w.KindIn(secret, copies.Everywhere)
	cases := map[string]struct{ got, want []copies.Slot }{
		"InANamespace":      {w.SlotsIn("a1"), []copies.Slot{in("a1", configMap, "m"), at("a1")}},
		"WhereASourceComes": {w.SlotsIn("a"), []copies.Slot{at("a")}},
		"WhereACopyIsLeft":  {w.SlotsIn("z"), []copies.Slot{at("z")}},
		"Nowhere":           {w.SlotsIn("solo"), nil},
		"SourcesOfTheKind":  {sources, []copies.Slot{at("acme"), at("zeta")}},
		"CopiesOfTheKind":   {found, []copies.Slot{at("a1"), at("b"), at("z")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			anyOrder := cmpopts.SortSlices(func(a, b copies.Slot) bool { return a.String() < b.String() })
			if name == "InANamespace" {
				anyOrder = nil
			}
			if diff := cmp.Diff(tc.want, tc.got, cmpopts.EquateEmpty(), anyOrder); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
	if s, c := w.Len(secret); s != 2 || c != 2 {
		t.Errorf("Len = %d, %d, want 2 sources and 2 copies of ours", s, c)
	}
}

func TestForgetKind(t *testing.T) {
	w := populated()
	w.ForgetKind(secret)
	if s, c := w.KindIn(secret, copies.Everywhere); s != nil || c != nil || w.Copies.HasCopyOf(at("acme")) ||
		w.Sources.At(at("acme")) != nil || w.Copies.At(at("a1")) != nil {
		t.Errorf("still known: %v, %v", s, c)
	}
	if s, c := w.Len(configMap); s != 1 || c != 1 {
		t.Errorf("another kind lost something: %d, %d", s, c)
	}
	w.SetKind(secret, copies.OptIn, true)
	source("acme", update)(w)
	copied("a1", "zeta", update)(w)
	w.ForgetKind(secret)
	w.SetKind(secret, copies.OptIn, true)
	source("acme", update)(w)
	if got := w.Plan(at("a1")); got.Verb != copies.Create {
		t.Errorf("a forgotten copy of an old ancestor still holds the namespace up: %v", got)
	}
}

func TestHasCopies(t *testing.T) {
	w := world(acme(), copied("a", "acme", update), copied("b", "acme", create))
	w.DeleteCopy(at("a"))
	if !w.Copies.HasCopyOf(at("acme")) || w.Copies.HasCopyOf(at("a")) {
		t.Error("one copy of acme's is left, and none of a's")
	}
	w.DeleteCopy(at("b"))
	w.DeleteCopy(at("b"))
	if w.Copies.HasCopyOf(at("acme")) {
		t.Error("no copy is left")
	}
	copied("a", "acme", update)(w)
	copied("a", "zeta", update)(w)
	if w.Copies.HasCopyOf(at("acme")) || !w.Copies.HasCopyOf(at("zeta")) {
		t.Error("a copy that is replaced counts for its new source alone")
	}
}

func TestLoss(t *testing.T) {
	w := world(acme(), copied("a", "acme", update), copied("b", "acme", update), copied("z", "zeta", update))
	is := func(what string, want copies.Loss) {
		t.Helper()
		if got := w.Loss(at("acme")); got != want {
			t.Errorf("%s: Loss = %d, want %d", what, got, want)
		}
	}
	is("at first nothing is known", copies.Unverified)
	w.SetLoss(at("acme"), copies.Doubtful)
	is("a look could not say", copies.Doubtful)
	if diff := cmp.Diff([]copies.Slot{at("acme")}, w.Doubtful("acme")); diff != "" {
		t.Errorf("Doubtful(acme): -want, +got:\n%s", diff)
	}
	w.SetLoss(at("acme"), copies.GoneWithNamespace)
	if diff := cmp.Diff([]copies.Slot{at("acme")}, w.Doubtful("acme")); diff != "" {
		t.Errorf("Doubtful(acme) of a source that went with its namespace: -want, +got:\n%s", diff)
	}
	w.SetLoss(at("acme"), copies.Doubtful)
	if got := w.Doubtful("zeta"); got != nil {
		t.Errorf("Doubtful(zeta) = %v", got)
	}
	w.SetLoss(at("acme"), copies.Confirmed)
	if got := w.Doubtful("acme"); got != nil {
		t.Errorf("Doubtful(acme) = %v after it was confirmed", got)
	}
	w.DeleteCopy(at("a"))
	is("while one copy is left it must be known", copies.Confirmed)
	copied("b", "acme", update, vanishing)(w)
	is("a copy that is put again changes nothing", copies.Confirmed)
	w.DeleteCopy(at("b"))
	is("with the last copy it is forgotten", copies.Unverified)
	w.SetLoss(at("acme"), copies.Confirmed)
	is("without copies it is of no interest", copies.Unverified)
	copied("a", "acme", update)(w)
	w.SetLoss(at("acme"), copies.Confirmed)
	source("acme", update)(w)
	w.SetLoss(at("acme"), copies.Confirmed)
	is("a source that is there is not lost", copies.Unverified)
}
