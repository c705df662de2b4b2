package propagate_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// PROP-I13: a copied RoleBinding that names a Role stays as long as the copy of the very Role that its author was asked about.
func TestPlanOfBindingToRole(t *testing.T) {
	rbac := func(kind string) schema.GroupKind {
		return schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: kind}
	}
	bindingAt := func(namespace string) propagate.Slot { return in(namespace, rbac("RoleBinding"), "releasers") }
	roleAt := func(namespace string) propagate.Slot { return in(namespace, rbac("Role"), "release") }
	// given is a RoleBinding of acme that names Role release, with its copy in a.
	given := func(mode string, facts ...fact) *propagate.World {
		w := world(acme())
		w.SetKind(rbac("RoleBinding"), propagate.OptIn, true)
		w.SetKind(rbac("Role"), propagate.OptIn, true)
		w.PutSource(bindingAt("acme"), &propagate.Source{UID: "b", ResourceVersion: "1", Mode: mode, Content: content("acme", 1), Role: "release"})
		w.PutCopy(bindingAt("a"), &propagate.Copy{UID: "c", ResourceVersion: "1", From: "acme", Ours: true, Digest: 1,
			Hash: propagate.Hash{Mode: mode, Place: propagate.PlaceOf(bindingAt("a"), "acme"), Content: content("acme", 1)}})
		for _, f := range facts {
			f(w)
		}
		return w
	}
	role := func(mode, from string, change ...func(*propagate.Copy)) fact {
		return func(w *propagate.World) {
			c := &propagate.Copy{UID: "r", ResourceVersion: "1", From: from, Ours: true, Digest: 1,
				Hash: propagate.Hash{Mode: mode, Place: propagate.PlaceOf(roleAt("a"), from), Content: "x"}}
			for _, change := range change {
				change(c)
			}
			w.PutCopy(roleAt("a"), c)
		}
	}
	for name, tt := range map[string]struct {
		mode  string
		facts []fact
		want  propagate.Verb
	}{
		"the copy of that Role":              {update, []fact{role(update, "acme")}, propagate.Nothing},
		"no Role":                            {update, nil, propagate.Delete},
		"the copy of another Role":           {update, []fact{role(update, "zeta")}, propagate.Delete},
		"a copy that others may change":      {update, []fact{role(v1alpha1.ModeCreate, "acme")}, propagate.Delete},
		"a copy that is not ours":            {update, []fact{role(update, "acme", func(c *propagate.Copy) { c.Ours = false })}, propagate.Delete},
		"a copy that is being deleted":       {update, []fact{role(update, "acme", func(c *propagate.Copy) { c.Terminating = true })}, propagate.Delete},
		"Roles are not known yet":            {update, []fact{func(w *propagate.World) { w.SetKind(rbac("Role"), propagate.OptIn, false) }}, propagate.Nothing},
		"mode create, the copy of that Role": {v1alpha1.ModeCreate, []fact{role(update, "acme")}, propagate.Nothing},
		"mode create, and no Role":           {v1alpha1.ModeCreate, nil, propagate.Delete},
		"a copy that becomes one in mode update": {update, []fact{role(v1alpha1.ModeCreate, "acme"), func(w *propagate.World) {
			w.PutSource(roleAt("acme"), &propagate.Source{UID: "s", ResourceVersion: "1", Mode: update, Content: "x"})
		}}, propagate.Nothing},
		"mode create, taken over from another operator": {v1alpha1.ModeCreate, []fact{func(w *propagate.World) {
			w.PutCopy(bindingAt("a"), &propagate.Copy{UID: "c", ResourceVersion: "1", From: "acme", Ours: true,
				Hash: propagate.Hash{Mode: v1alpha1.ModeCreate, Place: propagate.PlaceOf(bindingAt("a"), "acme"), Content: propagate.Unwritten}})
		}}, propagate.Nothing},
		"the binding names no Role any longer": {update, []fact{func(w *propagate.World) { w.Sources.At(bindingAt("acme")).Role = "" }}, propagate.Nothing},
	} {
		t.Run("PROP-I13 PROP-I15 "+name, func(t *testing.T) {
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

// PROP-L8: rails of the root are not held back, and take no room from other sources.
func TestRailsHaveNoLimits(t *testing.T) {
	w := world(limited(3, -1), aged("acme", 1), aged("acme", 2))
	rail := in("acme", secret, v1alpha1.RailPrefix+"quota")
	w.PutSource(rail, &propagate.Source{UID: "rail", ResourceVersion: "1", Mode: update, Content: content("acme", 1), Size: 100, Created: 0})
	counts := carryOut(w, w.Forest.Subtree("acme")...)
	if counts["s1"] != 3 || counts["s2"] != 0 || counts[rail.Name] != 3 {
		t.Errorf("copies: %v", counts)
	}
	w = world(limited(0, 0), aged("acme", 1))
	w.PutSource(rail, &propagate.Source{UID: "rail", ResourceVersion: "1", Mode: update, Content: content("acme", 1), Size: 100, Created: 9})
	if counts := carryOut(w, w.Forest.Subtree("acme")...); counts["s1"] != 0 || counts[rail.Name] != 3 {
		t.Errorf("copies under limits of 0: %v", counts)
	}
}
