package copies_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// seenIn makes Secrets a kind that is watched in each namespace separately, and of which everything is seen in these namespaces.
func seenIn(namespaces ...string) fact {
	return func(w *copies.World) {
		w.Sights.SetNarrow(secret)
		for _, namespace := range namespaces {
			w.Sights.Set(secret, namespace, true, true, copies.Seen)
		}
	}
}

func sight(namespace string, ofSources, ofCopies bool, now copies.Sight) fact {
	return func(w *copies.World) { w.Sights.Set(secret, namespace, ofSources, ofCopies, now) }
}

// The operator writes and deletes nothing that depends on what it doesn't see: docs/behaviour/informers.md 2.4.
func TestSight(t *testing.T) {
	cases := map[string]struct {
		reason string
		world  *copies.World
		at     string
		want   copies.Verb
	}{
		"AllSeen": {"the copies there and the sources above suffice", world(acme(), seenIn("acme", "a", "a1"), source("acme", update)),
			"a1", copies.Create},
		"SourcesAboveAlone": {
			"neither copies above nor sources there matter", world(acme(), seenIn(), source("acme", update), sight("acme", true, false, copies.Seen),
				sight("a", true, false, copies.Seen), sight("a1", false, true, copies.Seen)), "a1", copies.Create,
		},
		"NothingListedYet": {"absence means nothing", world(acme(), seenIn("acme", "a"), source("acme", update)), "a1", copies.Nothing},
		"CopiesUnseen": {
			"somebody else's object may stand there", world(acme(), seenIn("acme", "a", "a1"), source("acme", update),
				sight("a1", false, true, copies.Unseen)),
			"a1", copies.Nothing,
		},
		"SourcesBetweenUnseen": {
			"one may stand there", world(acme(), seenIn("acme", "a", "a1"), source("acme", update), sight("a", true, false, copies.Unseen)),
			"a1", copies.Nothing,
		},
		"SourceUnseen": {
			"its copy stays", world(acme(), seenIn("a"), copied("a", "acme", update), sight("acme", true, true, copies.Unseen)), "a", copies.Nothing,
		},
		"AllSeenEverywhere": {
			"that is in each namespace, whatever is said of it alone", world(acme(), seenIn(copies.Everywhere), source("acme", update),
				sight("a1", true, true, copies.Unseen)),
			"a1", copies.Create,
		},
		"NotSeenEverywhereAnyMore": {
			"each namespace counts for itself", world(acme(), seenIn(copies.Everywhere, "acme", "a1"), source("acme", update),
				sight(copies.Everywhere, true, true, copies.Unseen)),
			"a1", copies.Nothing,
		},
		"SourceSeenToBeMissing": {"it is looked for", world(acme(), seenIn("acme", "a"), copied("a", "acme", update)), "a", copies.Look},
		"MovedAway": {
			"where a copy came from is not asked once it is above no longer", world(acme(), seenIn("zeta", "z"), copied("z", "acme", update)),
			"z", copies.Delete,
		},
		"SourceNamespaceGone": {
			"a namespace that doesn't exist holds no source", world(planted("a in acme"), seenIn("a"), copied("a", "acme", update, handsOut),
				lost("acme", copies.GoneWithNamespace)),
			"a", copies.Delete,
		},
		"HaltedAndSourceUnseen": {
			"nobody knows what it gives", world(planted("acme root", "a in b", "b in a"), seenIn("a"), copied("a", "acme", update, handsOut)),
			"a", copies.Nothing,
		},
		"HaltedAndSourceSeen": {
			"what it no longer gives is taken away", world(planted("acme root", "a in b", "b in a"), seenIn("a", "acme"),
				copied("a", "acme", update, handsOut)), "a", copies.Look,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.world.Plan(at(tc.at)).Verb; got != tc.want {
				t.Errorf("%s: verb %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

func handsOut(c *copies.Copy) { c.Access = true }

func TestAwaitsSight(t *testing.T) {
	w := world(acme(), seenIn("acme", "a"))
	for namespace, want := range map[string]bool{"a": false, "a1": true, "b": true} {
		if got := w.AwaitsSight(namespace); got != want {
			t.Errorf("in %s: %t, want %t", namespace, got, want)
		}
	}
	w.Sights.Set(secret, "b", true, true, copies.Unseen)
	if !w.AwaitsSight("b") {
		t.Error("what is forbidden is not waited for: rails may be behind it")
	}
	rights := schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}
	w.SetKind(rights, copies.OptIn, true)
	w.Sights.SetNarrow(rights)
	w.Sights.SetNarrow(configMap)
	if w.AwaitsSight("a") {
		t.Error("rights are no rails, and of a kind that isn't served nothing is awaited")
	}
}

func TestWhatANamespaceHolds(t *testing.T) {
	w := populated()
	if diff := cmp.Diff([]copies.Slot{at("acme")}, w.OriginsIn(secret, "acme")); diff != "" {
		t.Errorf("OriginsIn: -want, +got:\n%s", diff)
	}
	w.DeleteSource(at("acme"))
	if diff := cmp.Diff([]copies.Slot{at("acme")}, w.OriginsIn(secret, "acme")); diff != "" {
		t.Errorf("OriginsIn, of a source that is gone and has copies: -want, +got:\n%s", diff)
	}
	sources, found := w.KindIn(secret, "a1")
	if diff := cmp.Diff([]copies.Slot{at("a1")}, found); diff != "" || sources != nil {
		t.Errorf("KindIn: sources %v, copies -want, +got:\n%s", sources, diff)
	}
	if !w.Copies.HasUpdatedIn("a1") || w.Copies.HasUpdatedIn("b") || w.Copies.HasUpdatedIn("solo") {
		t.Errorf("a copy in mode %s stands in a1 alone", v1alpha1.ModeUpdate)
	}
}
