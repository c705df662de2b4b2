package copies_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// PROP-I13: the copy of a RoleBinding to a Role stays only while its namespace has a copy in mode update of exactly that Role. The author
// of the RoleBinding needed the rights of that Role, and of no other.
func TestPlanOfBindingToRole(t *testing.T) {
	rbac := func(kind string) schema.GroupKind {
		return schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: kind}
	}
	bindingAt := func(namespace string) copies.Slot { return in(namespace, rbac("RoleBinding"), "releasers") }
	roleAt := func(namespace string) copies.Slot { return in(namespace, rbac("Role"), "release") }
	// given returns a World with a RoleBinding in acme that names Role release, and its copy in a.
	given := func(mode string, facts ...fact) *copies.World {
		w := world(acme())
		w.SetKind(rbac("RoleBinding"), copies.OptIn, true)
		w.SetKind(rbac("Role"), copies.OptIn, true)
		w.PutSource(bindingAt("acme"), &copies.Source{UID: "b", ResourceVersion: "1", Mode: mode, Content: content("acme", 1), Role: "release"})
		w.PutCopy(bindingAt("a"), &copies.Copy{UID: "c", ResourceVersion: "1", From: "acme", Ours: true, Digest: 1,
			Hash: copies.Hash{Mode: mode, Place: copies.PlaceOf(bindingAt("a"), "acme"), Content: content("acme", 1)}})
		for _, f := range facts {
			f(w)
		}
		return w
	}
	role := func(mode, from string, change ...func(*copies.Copy)) fact {
		return func(w *copies.World) {
			c := &copies.Copy{UID: "r", ResourceVersion: "1", From: from, Ours: true, Digest: 1,
				Hash: copies.Hash{Mode: mode, Place: copies.PlaceOf(roleAt("a"), from), Content: "x"}}
			for _, change := range change {
				change(c)
			}
			w.PutCopy(roleAt("a"), c)
		}
	}
	for name, tt := range map[string]struct {
		mode  string
		facts []fact
		want  copies.Verb
	}{
		"the copy of that Role":         {update, []fact{role(update, "acme")}, copies.Nothing},
		"no Role":                       {update, nil, copies.Delete},
		"the copy of another Role":      {update, []fact{role(update, "zeta")}, copies.Delete},
		"a copy that others may change": {update, []fact{role(v1alpha1.ModeCreate, "acme")}, copies.Delete},
		"a copy that is not ours":       {update, []fact{role(update, "acme", func(c *copies.Copy) { c.Ours = false })}, copies.Delete},
		"a copy that is being deleted": {update, []fact{role(update, "acme", func(c *copies.Copy) { c.Terminating = true })},
			copies.Delete},
		"Roles are not known yet": {update, []fact{func(w *copies.World) { w.SetKind(rbac("Role"), copies.OptIn, false) }},
			copies.Nothing},
		"mode create, the copy of that Role": {v1alpha1.ModeCreate, []fact{role(update, "acme")}, copies.Nothing},
		"mode create, and no Role":           {v1alpha1.ModeCreate, nil, copies.Delete},
		"a copy that becomes one in mode update": {update, []fact{role(v1alpha1.ModeCreate, "acme"), func(w *copies.World) {
			w.PutSource(roleAt("acme"), &copies.Source{UID: "s", ResourceVersion: "1", Mode: update, Content: "x"})
		}}, copies.Nothing},
		"mode create, taken over from another operator": {v1alpha1.ModeCreate, []fact{func(w *copies.World) {
			w.PutCopy(bindingAt("a"), &copies.Copy{UID: "c", ResourceVersion: "1", From: "acme", Ours: true,
				Hash: copies.Hash{Mode: v1alpha1.ModeCreate, Place: copies.PlaceOf(bindingAt("a"), "acme"), Content: copies.Unwritten}})
		}}, copies.Nothing},
		"the binding names no Role any longer": {update, []fact{func(w *copies.World) { w.Sources.At(bindingAt("acme")).Role = "" }},
			copies.Nothing},
	} {
		t.Run("PROP-I13 the copy of a RoleBinding stays only beside a copy of exactly that Role, in mode update; PROP-I15 the copy of a "+
			"RoleBinding in mode create, taken over from another operator, stays without a copy of the Role: "+name, func(t *testing.T) {
			w := given(tt.mode, tt.facts...)
			if got := w.Plan(bindingAt("a")); got.Verb != tt.want {
				t.Errorf("got %v, want verb %v", got, tt.want)
			}
			if got := w.BindingsTo(roleAt("a")); len(got) != 1 && w.Sources.At(bindingAt("acme")).Role != "" {
				t.Errorf("RoleBindings to the Role: %v", got)
			}
		})
	}
}

// A binding in mode create that came from another namespace is not judged by the Role of the source that reaches its place now.
func TestABindingThatCameFromElsewhereStays(t *testing.T) {
	kind := schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}
	w, slot := world(acme()), in("a", kind, "t")
	w.SetKind(copies.RoleKind, copies.OptIn, true)
	w.SetKind(kind, copies.OptIn, true)
	w.PutSource(slot.At("acme"), &copies.Source{UID: "b", ResourceVersion: "1", Mode: v1alpha1.ModeCreate, Content: content("acme", 1),
		Role: "release"})
	for from, want := range map[string]copies.Verb{"acme": copies.Delete, "tmpl": copies.Nothing} {
		w.PutCopy(slot, &copies.Copy{UID: "c", ResourceVersion: "1", From: from, Ours: true, Digest: 1,
			Hash: copies.Hash{Mode: v1alpha1.ModeCreate, Place: copies.PlaceOf(slot, from), Content: "x"}})
		if got := w.Plan(slot); got.Verb != want {
			t.Errorf("from %s: got verb %v, want %v", from, got.Verb, want)
		}
	}
}

func TestABindingToARoleLeavesModeUpdate(t *testing.T) {
	t.Run("PROP-I18 the copy of a RoleBinding that names a Role is deleted when its source changes to mode create: nothing would follow "+
		"its subjects", func(t *testing.T) {
		kind := func(kind string) schema.GroupKind {
			return schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: kind}
		}
		w := world(acme())
		for _, one := range []string{"Role", "RoleBinding"} {
			from := in("acme", kind(one), "s")
			w.SetKind(kind(one), copies.OptIn, true)
			w.PutSource(from, &copies.Source{UID: "u", ResourceVersion: "1", Mode: update, Content: content("acme", 1), Size: 100})
			copiedTo(from.At("a"), "acme", update)(w)
		}
		source := w.Sources.At(in("acme", kind("RoleBinding"), "s"))
		source.Role, source.Mode = "s", v1alpha1.ModeCreate
		if got := w.Plan(in("a", kind("RoleBinding"), "s")); got.Verb != copies.Delete {
			t.Errorf("got %v, want a deletion", got)
		}
	})
}

// PROP-L8: limits don't hold back rails of the root, and rails don't count toward the limits of other sources.
func TestRailsHaveNoLimits(t *testing.T) {
	w := world(limited(3, -1), aged("acme", 1), aged("acme", 2))
	rail := in("acme", secret, v1alpha1.RailPrefix+"quota")
	w.PutSource(rail, &copies.Source{UID: "rail", ResourceVersion: "1", Mode: update, Content: content("acme", 1), Size: 100, Created: 0})
	counts := carryOut(w, w.Forest.Subtree("acme")...)
	if counts["s1"] != 3 || counts["s2"] != 0 || counts[rail.Name] != 3 {
		t.Errorf("copies: %v", counts)
	}
	w = world(limited(0, 0), aged("acme", 1))
	w.PutSource(rail, &copies.Source{UID: "rail", ResourceVersion: "1", Mode: update, Content: content("acme", 1), Size: 100, Created: 9})
	if counts := carryOut(w, w.Forest.Subtree("acme")...); counts["s1"] != 0 || counts[rail.Name] != 3 {
		t.Errorf("copies under limits of 0: %v", counts)
	}
}
