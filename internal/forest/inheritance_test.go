package forest_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/warren-tenancy/warren/internal/forest"
)

const enforce = "pod-security.kubernetes.io/enforce"

// flow is a row of a table: a forest, and the change that its namespace of needs, without the derived keys.
type flow struct {
	reason  string
	grown   []*forest.Namespace
	sub     *forest.Sub
	of      string
	want    patch
	refused []string
}

func (tc flow) run(t *testing.T) {
	t.Helper()
	s := grown(tc.grown...)
	if tc.sub != nil {
		s = s.WithSub(tc.sub)
	}
	c := forest.DesiredChange(s, tc.of)
	got := patchOf(c)
	delete(got.Annotations, ancestryKey)
	delete(got.Annotations, parentUIDKey)
	maps.DeleteFunc(got.Labels, func(key, _ string) bool { return strings.HasSuffix(key, treeKey) })
	if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s\nDesired(%q): -want, +got:\n%s", tc.reason, tc.of, diff)
	}
	if diff := cmp.Diff(tc.refused, forest.RefusedKeys(s, tc.of)); diff != "" {
		t.Errorf("%s\nRefusedKeys(%q): -want, +got:\n%s", tc.reason, tc.of, diff)
	}
	if again := forest.DesiredChange(s.WithNamespace(written(s.Namespace(tc.of), c)), tc.of); !again.Empty() {
		t.Errorf("a second write is wanted: %v", patchOf(again))
	}
}

func TestInheritance(t *testing.T) {
	r := namespace("r", root, label("team", "neco"), annotation("memo", "m"))
	cases := map[string]flow{
		"Flows": {
			reason: "labels and annotations alike, noted as the operator's", of: "c", grown: some(r, namespace("c", below("r"))),
			want: patch{keys{"team": "neco"}, keys{"memo": "m", inheritedKey: "@memo,team"}},
		},
		"FromTheTopAtOnce": {
			reason: "whatever has been written in between", of: "d", grown: some(r, namespace("c", below("r")), namespace("d", below("c"))),
			want: patch{keys{"team": "neco"}, keys{"memo": "m", inheritedKey: "@memo,team"}},
		},
		"TopmostWinsAndReplaces": {
			reason: "a different value of its own is replaced, there and below", of: "d",
			grown: some(r, namespace("c", below("r"), label("team", "c")), namespace("d", below("c"), label("team", "d"))),
			want:  patch{keys{"team": "neco"}, keys{"memo": "m", inheritedKey: "@memo,team"}},
		},
		"LowerOwnWhereNothingIsAbove": {
			reason: "a key of a namespace's own flows from there", of: "d",
			grown: some(namespace("r", root), namespace("c", below("r"), label("team", "c")), namespace("d", below("c"))),
			want:  patch{keys{"team": "c"}, keys{inheritedKey: "team"}},
		},
		"SameValueStaysTheirs": {
			reason: "a key that somebody had set to the same value is not noted", of: "c",
			grown: some(r, namespace("c", below("r"), label("team", "neco"), annotation("memo", "m"))),
		},
		"TheirsWhenTheSourceGoes": {
			reason: "so it stays when the source goes", of: "c",
			grown: some(namespace("r", root), namespace("c", below("r"), label("team", "neco"), annotation("memo", "m"))),
		},
		"OursWhenTheSourceGoes": {
			reason: "what the operator wrote goes; a value that it replaced is not restored", of: "c",
			grown: some(namespace("r", root), namespace("c", below("r"), label("team", "neco"), annotation("memo", "m"), inherited("@memo,team"))),
			want:  patch{keys{"team": "-"}, keys{"memo": "-", inheritedKey: "-"}},
		},
		"LabelsAndAnnotationsAreTold": {
			reason: "memo the label is not memo the annotation", of: "c",
			grown: some(namespace("r", root), namespace("c", below("r"), annotation("team", "x"), label("memo", "y"), inherited("@memo,team"))),
			want:  patch{Annotations: keys{inheritedKey: "-"}},
		},
		"OursFlowsNoFurther": {
			reason: "what the operator wrote on a middle namespace is no source of its own", of: "d",
			grown: some(namespace("r", root), namespace("c", below("r"), label("team", "old"), inherited("team")),
				namespace("d", below("c"), label("team", "old"), inherited("team"))),
			want: patch{keys{"team": "-"}, keys{inheritedKey: "-"}},
		},
		"Drift": {
			reason: "an inherited key is put right", of: "c",
			grown: some(r, namespace("c", below("r"), label("team", "x"), annotation("memo", "m"), inherited("@memo,team"))),
			want:  patch{Labels: keys{"team": "neco"}},
		},
		"Moved": {
			reason: "keys of the old tree are exchanged for those of the new, keys of others stay", of: "c",
			grown: some(r, namespace("c", below("r"), label("team", "old"), label("env", "old"), label("own", "1"), inherited("env,team"))),
			want:  patch{keys{"team": "neco", "env": "-"}, keys{"memo": "m", inheritedKey: "@memo,team"}},
		},
		"OutOfTheConfiguration": {
			reason: "a key that the configuration names no more is taken back", of: "c",
			grown: some(namespace("r", root, label("tier", "web")), namespace("c", below("r"), label("tier", "web"), inherited("tier"))),
			want:  patch{keys{"tier": "-"}, keys{inheritedKey: "-"}},
		},
		"NeverInherited": {
			reason: "keys of ours, of the API server and of kubectl, whatever the globs say", of: "c",
			grown: some(namespace("r", root, references(""), label("kubernetes.io/metadata.name", "r"),
				label("app.kubernetes.io/created-by", "warren"),
				label("a.tenancy.warren.dev/x", "1"), label("xtenancy.warren.dev/ok", "1"),
				annotation("kubectl.kubernetes.io/last-applied-configuration", "{}"), annotation("tenancy.warren.dev/adopt", "true")),
				namespace("c", below("r"))),
			want: patch{keys{"xtenancy.warren.dev/ok": "1"}, keys{inheritedKey: "xtenancy.warren.dev/ok"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, tc.run)
	}
}

func TestInheritanceFromSubNamespaces(t *testing.T) {
	r := namespace("r", root, label("team", "neco"))
	sub := func(labels, annotations keys) *forest.Sub {
		return &forest.Sub{Parent: "r", Name: "c", Labels: labels, Annotations: annotations}
	}
	cases := map[string]flow{
		"OverridesWhereBothListTheKey": {
			reason: "the SubNamespace's value comes before what is above", of: "c", sub: sub(keys{"team": "tama"}, nil),
			grown: some(r, namespace("c", below("r"), bound)), want: patch{keys{"team": "tama"}, keys{inheritedKey: "team"}},
		},
		"OverrideFlowsOn": {
			reason: "and flows on from there", of: "d", sub: sub(keys{"team": "tama"}, nil),
			grown: some(r, namespace("c", below("r"), bound), namespace("d", below("c"))),
			want:  patch{keys{"team": "tama"}, keys{inheritedKey: "team"}},
		},
		"LocalKeyStays": {
			reason: "a key that matches subNamespaces.labels alone stays on that one namespace", of: "d",
			sub:   sub(keys{"app": "web"}, keys{"note": "n"}),
			grown: some(namespace("r", root), namespace("c", below("r"), bound, label("app", "web"), inherited("app")), namespace("d", below("c"))),
		},
		"Annotations": {
			reason: "annotations follow the same rules", of: "c", sub: sub(keys{"app": "web"}, keys{"note": "n", "memo": "mine"}),
			grown: some(namespace("r", root, annotation("memo", "m")), namespace("c", below("r"), bound)),
			want:  patch{keys{"app": "web"}, keys{"note": "n", "memo": "mine", inheritedKey: "@memo,@note,app"}},
		},
		"NotBound": {
			reason: "a SubNamespace says nothing of a namespace that is merely placed there", of: "c",
			sub:   sub(keys{"team": "tama", "foo": "x"}, nil),
			grown: some(r, namespace("c", below("r"))), want: patch{keys{"team": "neco"}, keys{inheritedKey: "team"}},
		},
		"AnotherParent": {
			reason: "nor does one in another namespace", of: "c", sub: sub(keys{"team": "tama"}, nil),
			grown: some(r, namespace("z", root), namespace("c", below("z"), bound)),
		},
		"Removed": {
			reason: "a key that the spec has no more falls back to what is above", of: "c", sub: sub(nil, nil),
			grown: some(r, namespace("c", below("r"), bound, label("team", "tama"), label("app", "web"), inherited("app,team"))),
			want:  patch{keys{"team": "neco", "app": "-"}, keys{inheritedKey: "team"}},
		},
		"NotAllowed": {
			reason: "keys that the configuration doesn't name are ignored and named", of: "c",
			sub:   sub(keys{"foo": "a", "app": "b"}, keys{"bar": "c"}),
			grown: some(namespace("r", root), namespace("c", below("r"), bound)), want: patch{keys{"app": "b"}, keys{inheritedKey: "app"}},
			refused: []string{"@bar", "foo"},
		},
		"NoLongerAllowed": {
			reason: "a key that leaves the configuration leaves the namespace, though the spec still has it", of: "c",
			sub:   sub(keys{"foo": "a"}, keys{"bar": "c"}),
			grown: some(namespace("r", root), namespace("c", below("r"), bound, label("foo", "a"), annotation("bar", "c"), inherited("@bar,foo"))),
			want:  patch{keys{"foo": "-"}, keys{"bar": "-", inheritedKey: "-"}}, refused: []string{"@bar", "foo"},
		},
		"NeverTaken": {
			reason: "keys of ours are never taken from a SubNamespace", of: "c",
			sub:   sub(keys{"tenancy.warren.dev/type": "root", "app.kubernetes.io/created-by": "me"}, nil),
			grown: some(namespace("r", root), namespace("c", below("r"), bound)), refused: []string{"app.kubernetes.io/created-by",
				"tenancy.warren.dev/type"},
		},
	}
	for name, tc := range cases {
		t.Run(name, tc.run)
	}
}

func TestPrivilegedIsOnlySetByAPerson(t *testing.T) {
	r := namespace("r", root, label(enforce, "privileged"))
	baseline := label(enforce, "baseline")
	sub := func(value string) *forest.Sub {
		return &forest.Sub{Parent: "r", Name: "c", Labels: keys{enforce: value}}
	}
	cases := map[string]flow{
		"NotInherited": {
			reason: "the key is left alone, and named", of: "c", grown: some(r, namespace("c", below("r"))), refused: []string{enforce},
		},
		"NorFurtherDown": {
			reason: "whatever the depth", of: "d", grown: some(r, namespace("c", below("r")), namespace("d", below("c"))),
			refused: []string{enforce},
		},
		"OwnStays": {
			reason: "a person's own value is not replaced", of: "c", grown: some(r, namespace("c", below("r"), baseline)),
			refused: []string{enforce},
		},
		"OursStays": {
			reason: "what came from above before stays, and stays ours", of: "c",
			grown: some(r, namespace("c", below("r"), baseline, inherited(enforce))), refused: []string{enforce},
		},
		"OursStaysFurtherDown": {
			reason: "a namespace is not stripped of its level because one above could not follow", of: "d",
			grown:   some(r, namespace("c", below("r"), baseline, inherited(enforce)), namespace("d", below("c"), baseline, inherited(enforce))),
			refused: []string{enforce},
		},
		"OwnFlowsOn": {
			reason: "the level that a person set below the privileged one holds below it", of: "d",
			grown: some(r, namespace("c", below("r"), baseline), namespace("d", below("c"))),
			want:  patch{keys{enforce: "baseline"}, keys{inheritedKey: enforce}},
		},
		"NotFromASubNamespace": {
			reason: "the level from above holds", of: "c", sub: sub("privileged"),
			grown: some(namespace("r", root, baseline), namespace("c", below("r"), bound)),
			want:  patch{keys{enforce: "baseline"}, keys{inheritedKey: enforce}}, refused: []string{enforce},
		},
		"ASubNamespaceMayBeStricter": {
			reason: "its value is written, and nothing is refused", of: "c", sub: sub("restricted"),
			grown: some(r, namespace("c", below("r"), bound)), want: patch{keys{enforce: "restricted"}, keys{inheritedKey: enforce}},
		},
		"OtherLevels": {
			reason: "warn and audit are not enforced", of: "c",
			grown: some(namespace("r", root, label("pod-security.kubernetes.io/warn", "privileged")), namespace("c", below("r"))),
			want:  patch{keys{"pod-security.kubernetes.io/warn": "privileged"}, keys{inheritedKey: "pod-security.kubernetes.io/warn"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, tc.run)
	}
}

func TestInheritanceFromTemplates(t *testing.T) {
	t1 := namespace("t1", template, label("team", "base"), label("env", "t1"))
	t2 := namespace("t2", template, references("t1"), label("team", "t2"))
	cases := map[string]flow{
		"Root": {
			reason: "a template's value replaces the root's own; the outermost template wins", of: "r",
			grown: some(t1, t2, namespace("r", root, references("t2"), label("team", "neco"))),
			want:  patch{keys{"team": "base", "env": "t1"}, keys{inheritedKey: "env,team"}},
		},
		"Tree": {
			reason: "and flows down the tree", of: "c", grown: some(t1, t2, namespace("r", root, references("t2"), label("team", "neco")),
				namespace("c", below("r"))),
			want: patch{keys{"team": "base", "env": "t1"}, keys{inheritedKey: "env,team"}},
		},
		"Instance": {
			reason: "an instance gets keys, and no place", of: "i", grown: some(t1, namespace("i", references("t1"))),
			want: patch{keys{"team": "base", "env": "t1"}, keys{inheritedKey: "env,team"}},
		},
		"TemplateItself": {
			reason: "a template inherits from its own", of: "t2", grown: some(t1, t2), want: patch{keys{"team": "base", "env": "t1"},
				keys{inheritedKey: "env,team"}},
		},
		"Unset": {
			reason: "what came from a template goes with the reference", of: "r",
			grown: some(t1, namespace("r", root, label("team", "base"), label("env", "t1"), inherited("env,team"))),
			want:  patch{keys{"team": "-", "env": "-"}, keys{inheritedKey: "-"}},
		},
		"Frozen": {
			reason: "what came from a template that can't be judged stays", of: "r",
			grown: some(namespace("r", root, references("gone"), label("team", "base"), annotation("memo", "m"), label("own", "1"),
				inherited("@memo,team"))),
		},
		"FrozenOnTheWay": {
			reason: "and holds below, for a new namespace too", of: "c",
			grown: some(namespace("r", root, references("gone"), label("team", "base"), inherited("team")), namespace("c", below("r"))),
			want:  patch{keys{"team": "base"}, keys{inheritedKey: "team"}},
		},
		"TheTreeGoesOn": {
			reason: "what came from the root itself goes with it, whatever becomes of the template", of: "c",
			grown: some(namespace("r", root, references("gone"), label("team", "base"), inherited("team")),
				namespace("c", below("r"), label("team", "base"), label("env", "x"), inherited("env,team"))),
			want: patch{keys{"env": "-"}, keys{inheritedKey: "team"}},
		},
		"FrozenButOutOfTheConfiguration": {
			reason: "a key that may not flow any more is taken back all the same", of: "r",
			grown: some(namespace("r", root, references("gone"), label("tier", "x"), inherited("tier"))),
			want:  patch{keys{"tier": "-"}, keys{inheritedKey: "-"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, tc.run)
	}
}

func TestRulesWithoutFunctions(t *testing.T) {
	s := forest.New(forest.Rules{})
	for _, n := range some(namespace("kube-x", root, label("team", "a"), annotation("memo", "m")),
		namespace("c", below("kube-x"), placed("kube-x/c"))) {
		s = s.WithNamespace(n)
	}
	if c := forest.DesiredChange(s, "c"); !c.Empty() {
		t.Errorf("rules that name nothing let nothing flow: %v", patchOf(c))
	}
}

func TestRefusedKeysOfAMissingNamespace(t *testing.T) {
	if got := forest.RefusedKeys(grown(), "x"); got != nil {
		t.Errorf("RefusedKeys = %v", got)
	}
}
