package copies_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

func TestPlanSelectors(t *testing.T) {
	type set = map[string]bool
	all := set{"a": true, "a1": true, "b": true}
	cases := map[string]struct {
		selector string
		want     set
	}{
		"Everything":  {"", all},
		"Children":    {"acme.tree.tenancy.warren.dev/depth=1", set{"a": true, "b": true}},
		"NotBelowA":   {"!a.tree.tenancy.warren.dev/depth", set{"b": true}},
		"Deeper":      {"acme.tree.tenancy.warren.dev/depth>1", set{"a1": true}},
		"ByName":      {"kubernetes.io/metadata.name in (a1,b)", set{"a1": true, "b": true}},
		"ByLabel":     {"tier=web", set{"b": true}},
		"Nobody":      {"tier=db", set{}},
		"WholeTree":   {"acme.tree.tenancy.warren.dev/depth", all},
		"OtherForest": {"zeta.tree.tenancy.warren.dev/depth", set{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := world(acme("b in acme tier=web"), source("acme", update, selecting(tc.selector)))
			for namespace := range all {
				want := copies.Nothing
				if tc.want[namespace] {
					want = copies.Create
				}
				if got := w.Plan(at(namespace)); got.Verb != want {
					t.Errorf("Plan(%s) = %v, want verb %d", namespace, got, want)
				}
			}
		})
	}
}

func TestPlanSelectionByUpperAndLower(t *testing.T) {
	upper, lower := source("acme", update, selecting("tier=web")), source("a", update)
	cases := map[string]decision{
		"UpperDoesNotReach": {reason: "a lower source takes over", facts: facts(upper, lower), verb: copies.Create, from: "a", mode: update},
		"UpperReaches": {reason: "the upper one replaces it in place", forest: acme("a1 in a tier=web"),
			facts: facts(upper, lower, copied("a1", "a", update)), verb: copies.Update, from: "acme", mode: update},
		"LowerUnselected": {reason: "a lower source that is not selected upstream has its place for itself", in: "a", facts: facts(upper, lower)},
		"ExcludedUpper": {reason: "an excluded source holds no place", facts: facts(source("acme", update, excluded), lower),
			verb: copies.Create, from: "a", mode: update},
		"ExcludedLower": {reason: "but stands where it stands", in: "a", facts: facts(source("acme", update), source("a", update, excluded)),
			from: "acme", why: v1alpha1.ReasonConflict},
	}
	for name, tc := range cases {
		t.Run(name, tc.run)
	}
}

func TestPlanTemplates(t *testing.T) {
	f := planted("t1 template", "t2 template of t1", "acme root of t2", "a in acme", "solo of t2")
	cases := map[string]decision{
		"Root": {reason: "the root itself gets a template's source", forest: f, in: "acme", facts: facts(source("t2", update)),
			verb: copies.Create, from: "t2", mode: update},
		"Tree": {reason: "and so does its tree, straight from there", forest: f, in: "a", facts: facts(source("t1", update)),
			verb: copies.Create, from: "t1", mode: update},
		"Instance": {reason: "an instance gets the whole chain", forest: f, in: "solo", facts: facts(source("t1", update)),
			verb: copies.Create, from: "t1", mode: update},
		"OutermostWins": {reason: "the outermost template ranks first", forest: f, in: "a",
			facts: facts(source("t1", update), source("t2", update), source("acme", update)), verb: copies.Create, from: "t1", mode: update},
		"AboveTheRoot": {reason: "templates rank above the root's own", forest: f, in: "a",
			facts: facts(source("t2", update), source("acme", update)), verb: copies.Create, from: "t2", mode: update},
		"Shadowed": {reason: "a lower template's source is in conflict with an upper one's", forest: f, in: "t2",
			facts: facts(source("t1", update), source("t2", update)), from: "t1", why: v1alpha1.ReasonConflict},
		"Unset": {reason: "copies go with the reference", forest: planted("t1 template", "acme root", "a in acme"), in: "a",
			facts: facts(source("t1", update), copied("a", "t1", update)), verb: copies.Delete, from: "t1"},
	}
	for name, tc := range cases {
		t.Run(name, tc.run)
	}
}

func TestPlanBarrier(t *testing.T) {
	old := func(change ...func(*copies.Copy)) fact { return copiedTo(other("a1"), "zeta", update, change...) }
	waiting := v1alpha1.ReasonWaitingForRemoval
	cases := map[string]decision{
		"Create": {reason: "nothing is created while a copy of an old ancestor stands", facts: facts(source("acme", update), old()),
			from: "acme", why: waiting},
		"Update": {reason: "nor changed", facts: facts(source("acme", update, changed), copied("a1", "acme", update), old()),
			from: "acme", why: waiting},
		"Overwrite": {reason: "nor overwritten", facts: facts(source("acme", update), copied("a1", "acme", create), old()),
			from: "acme", why: waiting},
		"Vanishing": {reason: "answered is not gone", facts: facts(source("acme", update), old(vanishing)), from: "acme", why: waiting},
		"OtherKind": {reason: "whatever its kind",
			facts: facts(source("acme", update), copiedTo(copies.Slot{Kind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "a1", Name: "c"}, "zeta",
				update)), from: "acme", why: waiting},
		"DeletesGoOn": {reason: "deletions don't wait", facts: facts(source("acme", none), copied("a1", "acme", update), old()),
			verb: copies.Delete, from: "acme"},
		"SettledStays": {reason: "what is right needs no write", facts: facts(source("acme", update), copied("a1", "acme", update), old())},
		"NotOurs": {reason: "a stranger's object holds nobody up", facts: facts(source("acme", update), old(forged)), verb: copies.Create,
			from: "acme", mode: update},
		"KeptCopy": {reason: "nor does what stays", facts: facts(source("acme", update), copiedTo(other("a1"), "zeta", create)),
			verb: copies.Create, from: "acme", mode: update},
		"OnThePath": {reason: "nor a copy whose source is still above",
			facts: facts(source("acme", update), copiedTo(other("a1"), "a", update)), verb: copies.Create, from: "acme", mode: update},
		"ElsewhereOnly": {reason: "namespaces don't wait for each other",
			facts: facts(source("acme", update), copiedTo(other("a"), "zeta", update)), verb: copies.Create, from: "acme", mode: update},
		"Gone": {
			reason: "once it is gone the way is free", facts: facts(source("acme", update), old(),
				func(w *copies.World) { w.DeleteCopy(other("a1")) }),
			verb: copies.Create, from: "acme", mode: update,
		},
		"OneOfTwoGone": {
			reason: "the last one counts", in: "a1",
			facts: facts(source("acme", update), old(), copiedTo(in("a1", secret, "older"), "zeta", update),
				func(w *copies.World) { w.DeleteCopy(other("a1")) }),
			from: "acme", why: waiting,
		},
		"Replaced": {
			reason: "or is another's now", facts: facts(source("acme", update), old(), copiedTo(other("a1"), "acme", update)),
			verb: copies.Create, from: "acme", mode: update,
		},
		"FrozenTemplate": {
			reason: "what stays because its template can't be judged holds nobody up", forest: planted("acme root of tmpl", "a in acme", "a1 in a"),
			facts: facts(source("acme", update), copiedTo(other("a1"), "tmpl", update)), verb: copies.Create, from: "acme", mode: update,
		},
	}
	for name, tc := range cases {
		t.Run(name, tc.run)
	}
}

func TestPlanKinds(t *testing.T) {
	cases := map[string]decision{
		"NotSynced": {reason: "absence means nothing yet", facts: facts(kind(copies.OptIn, false), source("acme", update),
			copied("a1", "zeta", update))},
		"Unknown": {reason: "a kind that nobody configured is not touched", facts: facts(func(w *copies.World) { w.ForgetKind(secret) },
			source("acme", update), copied("a1", "zeta", update))},
		"Remove": {reason: "copies go, whatever is wanted", facts: facts(kind(copies.Remove, true), source("acme", update),
			copied("a1", "acme", update)), verb: copies.Delete, from: "acme"},
		"RemoveKept": {reason: "but for those that belong to their namespace",
			facts: facts(kind(copies.Remove, true), copied("a1", "acme", create))},
		"RemoveForged":  {reason: "and those that are not ours", facts: facts(kind(copies.Remove, true), copied("a1", "acme", update, forged))},
		"RemoveNothing": {reason: "then nothing is written", facts: facts(kind(copies.Remove, true), source("acme", update))},
		"RemoveHalted": {reason: "a halted namespace is left alone all the same", forest: planted("a1 in gone"),
			facts: facts(kind(copies.Remove, true), copied("a1", "acme", update))},
		"RemoveUnsynced": {reason: "and nothing is deleted before all is in sight", facts: facts(kind(copies.Remove, false),
			copied("a1", "acme", update))},
		"All": {reason: "mode All differs in what is a source, not in what is done",
			facts: facts(kind(copies.All, true), source("acme", update)), verb: copies.Create, from: "acme", mode: update},
		"AllNoneObstacle": {reason: "an object that opted out still stands in the way", in: "a",
			facts: facts(kind(copies.All, true), source("acme", update), source("a", none)), from: "acme", why: v1alpha1.ReasonConflict},
		"AllNoneFrees": {reason: "and lets a lower one through", facts: facts(kind(copies.All, true), source("acme", none), source("a", update)),
			verb: copies.Create, from: "a", mode: update},
	}
	for name, tc := range cases {
		t.Run(name, tc.run)
	}
}

func TestPlanKeepsKindsApart(t *testing.T) {
	configMap := copies.Slot{Kind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "a", Name: "s"}
	w := world(acme(), source("acme", update))
	w.SetKind(configMap.Kind, copies.OptIn, true)
	if got := w.Plan(configMap); got.Verb != copies.Nothing {
		t.Errorf("a Secret is no source of a ConfigMap: %v", got)
	}
}
