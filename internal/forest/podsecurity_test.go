package forest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/warren-tenancy/warren/internal/forest"
)

const enforceVersion = "pod-security.kubernetes.io/enforce-version"

func TestPodSecurityIsNotWeakened(t *testing.T) {
	baseline, restricted := label(enforce, "baseline"), label(enforce, "restricted")
	old, newer := label(enforceVersion, "v1.20"), label(enforceVersion, "v1.30")
	both := inherited(enforce + "," + enforceVersion)
	sub := func(labels keys) *forest.Sub { return &forest.Sub{Parent: "r", Name: "c", Labels: labels} }
	cases := map[string]flow{
		"Raised": {
			reason: "a stricter level from above replaces one's own", of: "c", grown: some(namespace("r", root, restricted),
				namespace("c", below("r"), baseline)),
			want: patch{keys{enforce: "restricted"}, keys{inheritedKey: enforce}},
		},
		"OwnIsStricter": {
			reason: "what a cluster admin set below stays, and nobody is told of a refusal", of: "c",
			grown: some(namespace("r", root, baseline), namespace("c", below("r"), restricted)),
		},
		"OwnIsStricterAndFlows": {
			reason: "it holds below, too", of: "d",
			grown: some(namespace("r", root, baseline), namespace("c", below("r"), restricted), namespace("d", below("c"))),
			want:  patch{keys{enforce: "restricted"}, keys{inheritedKey: enforce}},
		},
		"LoweredAbove": {
			reason: "the operator doesn't lower what it wrote", of: "c",
			grown: some(namespace("r", root, baseline), namespace("c", below("r"), restricted, inherited(enforce))), refused: []string{enforce},
		},
		"TakenOffAbove": {
			reason: "nor takes it off", of: "c", grown: some(namespace("r", root), namespace("c", below("r"), baseline, inherited(enforce))),
			refused: []string{enforce},
		},
		"HeldForNewOnes": {
			reason: "what stands below holds for a new namespace further down", of: "d",
			grown: some(namespace("r", root), namespace("c", below("r"), baseline, inherited(enforce)), namespace("d", below("c"))),
			want:  patch{keys{enforce: "baseline"}, keys{inheritedKey: enforce}},
		},
		"WeakerSubNamespace": {
			reason: "a spec can't weaken", of: "c", sub: sub(keys{enforce: "baseline"}), grown: some(namespace("r", root, restricted),
				namespace("c", below("r"), bound)),
			want: patch{keys{enforce: "restricted"}, keys{inheritedKey: enforce}}, refused: []string{enforce},
		},
		"OlderVersionOfASubNamespace": {
			reason: "nor by an older version", of: "c", sub: sub(keys{enforceVersion: "v1.20"}), grown: some(namespace("r", root, restricted, newer),
				namespace("c", below("r"), bound)),
			want:    patch{keys{enforce: "restricted", enforceVersion: "v1.30"}, keys{inheritedKey: enforce + "," + enforceVersion}},
			refused: []string{enforce},
		},
		"OlderVersionAbove": {
			reason: "the later of two versions holds", of: "c", grown: some(namespace("r", root, baseline, old),
				namespace("c", below("r"), baseline, newer, both)), refused: []string{enforce},
		},
		"LaterVersionAbove": {
			reason: "and comes down", of: "c", grown: some(namespace("r", root, baseline, newer), namespace("c", below("r"), baseline, old, both)),
			want: patch{keys{enforceVersion: "v1.30"}, nil},
		},
		"NoVersionAbove": {
			reason: "no version is the latest, and the key isn't taken off", of: "c", grown: some(namespace("r", root, baseline),
				namespace("c", below("r"), baseline, old, both)),
			want: patch{keys{enforceVersion: "latest"}, nil},
		},
	}
	for name, tc := range cases {
		t.Run(name, tc.run)
	}
}

func TestANamespaceThatLeavesKeepsItsLevel(t *testing.T) {
	n := namespace("c", label(enforce, "baseline"), label(enforceVersion, "v1.30"), label("team", "neco"),
		inherited(enforce+","+enforceVersion+",team"))
	got := patchOf(forest.DesiredChange(grown(n), "c"))
	if diff := cmp.Diff(patch{keys{"team": "-"}, keys{inheritedKey: "-"}}, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
