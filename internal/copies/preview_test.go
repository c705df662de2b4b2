package copies_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

func TestPreview(t *testing.T) {
	none := func(s *copies.Source) { s.Mode = v1alpha1.ModeNone }
	cases := map[string]struct {
		reason string
		forest *forest.Snapshot
		facts  []fact
		want   []copies.Step
	}{
		"Nothing": {reason: "what is as it should be needs no write", facts: facts(source("acme", update), copied("a", "acme", update),
			copied("a1", "acme", update), copied("b", "acme", update))},
		"All": {
			reason: "each kind of write says why it is made",
			facts: facts(source("acme", update, changed), copied("a", "acme", update), copied("b", "acme", update, forged),
				copied("z", "acme", update), copied("solo", "zeta", update)),
			want: []copies.Step{
				{Slot: at("a"), Verb: copies.Update, From: "acme",
					Why: "its source has changed, or propagation.excludedLabels or propagation.excludedAnnotations now exclude other keys, " +
						"or its kind is now read in another version"},
				{Slot: at("a1"), Verb: copies.Create, From: "acme", Why: "it is not there yet"},
				{Slot: at("b"), From: "acme", Why: "an object of that name exists, but is no copy of this source", Held: v1alpha1.ReasonConflict},
				{Slot: at("solo"), Verb: copies.Delete, From: "zeta", Why: "namespace zeta is no longer above this one"},
				{Slot: at("z"), Verb: copies.Delete, From: "acme", Why: "namespace acme is no longer above this one"},
			},
		},
		"Moved": {
			reason: "what a move takes away goes before what it brings comes",
			forest: acme("b in zeta"), facts: facts(source("acme", update), source("zeta", update), copied("a", "acme", update),
				copied("a1", "acme", update), copied("b", "acme", update), copied("z", "zeta", update)),
			want: []copies.Step{
				{Slot: at("b"), Verb: copies.Delete, From: "acme", Why: "namespace acme is no longer above this one"},
				{Slot: at("b"), Verb: copies.Create, From: "zeta", Why: "it is not there yet"},
			},
		},
		"Lost": {
			reason: "a source that is not there is gone, unless its namespace goes too",
			forest: acme("gone root terminating", "g in acme"), facts: facts(copied("a", "acme", update), copied("g", "gone", update)),
			want: []copies.Step{
				{Slot: at("a"), Verb: copies.Delete, From: "acme", Why: "its source is gone, or no source any more"},
				{Slot: at("g"), Verb: copies.Delete, From: "gone", Why: "namespace gone is no longer above this one"},
			},
		},
		"Remove": {
			reason: "mode Remove takes every copy in mode update", facts: facts(kind(copies.Remove, true), copied("a", "acme", update),
				copied("b", "acme", create)),
			want: []copies.Step{{Slot: at("a"), Verb: copies.Delete, From: "acme", Why: "propagation.kinds has Secret in mode Remove"}},
		},
		"None": {
			reason: "an owner can take a source back", facts: facts(source("acme", update, none), copied("a", "acme", update)),
			want: []copies.Step{{Slot: at("a"), Verb: copies.Delete, From: "acme", Why: "the label propagate of its source is none"}},
		},
		"Unselected": {
			reason: "a selector can shrink", facts: facts(source("acme", update, selecting("tier=web")), copied("a", "acme", update)),
			want: []copies.Step{{Slot: at("a"), Verb: copies.Delete, From: "acme", Why: "its source doesn't select this namespace"}},
		},
		"Drifted": {
			reason: "a copy that somebody changed is put right", facts: facts(source("acme", update, selecting("kubernetes.io/metadata.name=a")),
				copied("a", "acme", update, drifted)),
			want: []copies.Step{{Slot: at("a"), Verb: copies.Update, From: "acme", Why: "it differs from its source: another client changed it"}},
		},
	}
	for name, tc := range cases {
		t.Run("PROP-M1 the plan has each write of copies once, with its reason, and conflicts; in a namespace, deletes are before other "+
			"writes: "+name, func(t *testing.T) {
			f := tc.forest
			if f == nil {
				f = acme()
			}
			if diff := cmp.Diff(tc.want, world(f, tc.facts...).Preview()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
