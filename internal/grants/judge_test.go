package grants_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/warren-tenancy/warren/internal/grants"
)

func TestJudge(t *testing.T) {
	mallory := rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "mallory"}
	cases := map[string]struct {
		change func(*grants.Pair)
		role   grants.Verdict
		bound  grants.Verdict
	}{
		"as written": {func(*grants.Pair) {}, grants.Equal, grants.Equal},
		"rules and members": {func(p *grants.Pair) { p.Role.Rules[0].Verbs = []string{"*"}; p.Binding.Subjects[0] = mallory },
			grants.Drift, grants.Drift},
		"labels of ours": {func(p *grants.Pair) {
			p.Role.Labels["app.kubernetes.io/managed-by"] = "helm"
			p.Binding.Labels["tenancy.warren.dev/propagate"] = "none"
		}, grants.Drift, grants.Drift},
		"labels of others": {func(p *grants.Pair) {
			p.Role.Labels["team"] = "a"
			p.Binding.Annotations = map[string]string{"note": "b"}
		}, grants.Equal, grants.Equal},
		"an aggregation label": {func(p *grants.Pair) { p.Role.Labels["rbac.authorization.k8s.io/aggregate-to-admin"] = "true" },
			grants.Drift, grants.Equal},
		"an aggregation rule": {func(p *grants.Pair) { p.Role.AggregationRule = &rbacv1.AggregationRule{} }, grants.Drift, grants.Equal},
		"roleRef":             {func(p *grants.Pair) { p.Binding.RoleRef.Name = "cluster-admin" }, grants.Equal, grants.Drift},
		"the label access": {func(p *grants.Pair) {
			delete(p.Role.Labels, "tenancy.warren.dev/access")
			p.Binding.Labels["tenancy.warren.dev/access"] = "edit"
		}, grants.Conflict, grants.Conflict},
		"another tenant's": {func(p *grants.Pair) { p.Role.Labels["tenancy.warren.dev/tenant"] = "shop" }, grants.Conflict, grants.Equal},
		"owners stripped":  {func(p *grants.Pair) { p.Role.OwnerReferences, p.Binding.OwnerReferences = nil, nil }, grants.Drift, grants.Drift},
		"ACC-R04 a pair without an owner and with other rules and subjects is a conflict": {func(p *grants.Pair) {
			p.Role.OwnerReferences, p.Binding.OwnerReferences = nil, nil
			p.Role.Rules[0].ResourceNames = nil
			p.Binding.Subjects = append(p.Binding.Subjects, mallory)
		}, grants.Conflict, grants.Conflict},
		"another tenant as owner too": {func(p *grants.Pair) { p.Role.OwnerReferences = append(p.Role.OwnerReferences, owned("shop", "1")...) },
			grants.Drift, grants.Equal},
		"ACC-R13 an owner with an old UID is " +
			"drift": {func(p *grants.Pair) { p.Role.OwnerReferences = owned("payments", "old") }, grants.Drift, grants.Equal},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			desired := grants.For(payments(), legacy).Sudo
			existing := grants.For(payments(), legacy).Sudo
			c.change(&existing)
			if got := grants.Judge(existing.Role, desired.Role); got != c.role {
				t.Errorf("role: want %s, got %s", c.role, got)
			}
			if got := grants.Judge(existing.Binding, desired.Binding); got != c.bound {
				t.Errorf("binding: want %s, got %s", c.bound, got)
			}
			for _, two := range [][2]grants.Object{{existing.Role, desired.Role}, {existing.Binding, desired.Binding}} {
				if grants.Judge(two[0], two[1]) == grants.Drift && !grants.MustRecreate(two[0], two[1]) {
					if got := grants.Judge(grants.Restore(two[0], two[1]), two[1]); got != grants.Equal {
						t.Errorf("%s is %s after it was put back", grants.KeyOf(two[0]), got)
					}
				}
			}
		})
	}
}

func TestSharedOwners(t *testing.T) {
	yes := true
	cases := map[string]struct {
		before   []string
		restored []string // the owners if payments lists the user
		released []string // the owners if payments no longer lists the user; nil: no write
		last     bool
	}{
		"nobody": {nil, []string{"payments", "UID_PAYMENTS"}, nil, true},
		"payments": {[]string{"payments", "UID_PAYMENTS"}, []string{"payments", "UID_PAYMENTS"},
			[]string{"payments", "mark-for-deletion"}, true},
		"shop": {[]string{"shop", "1"}, []string{"shop", "1", "payments", "UID_PAYMENTS"}, nil, false},
		"ACC-S19 a mark in the reference of a tenant that lists the user again is " +
			"replaced": {[]string{"payments", "mark-for-deletion", "shop", "1"}, []string{"payments", "UID_PAYMENTS", "shop", "1"}, nil,
			false},
		"ACC-S20 if both references are marked, only that of the tenant that lists the user is " +
			"replaced": {[]string{"payments", "mark-for-deletion", "shop", "mark-for-deletion"},
			[]string{"payments", "UID_PAYMENTS", "shop", "mark-for-deletion"}, nil, true},
		"twice": {[]string{"payments", "old", "shop", "1", "payments", "UID_PAYMENTS"}, []string{"payments", "UID_PAYMENTS", "shop", "1"},
			[]string{"payments", "mark-for-deletion", "shop", "1"}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			desired := grants.For(payments(), legacy).Self[0].Role
			existing := desired.DeepCopy()
			existing.OwnerReferences = owned(c.before...)
			if diff := cmp.Diff(owned(c.restored...), grants.Restore(existing, desired).GetOwnerReferences()); diff != "" {
				t.Errorf("restored (-want +got):\n%s", diff)
			}
			released, ok := grants.Release(existing, "payments")
			switch {
			case ok != (c.released != nil):
				t.Errorf("release: want a write %v, got %v", c.released != nil, ok)
			case ok:
				if diff := cmp.Diff(owned(c.released...), released.GetOwnerReferences()); diff != "" {
					t.Errorf("released (-want +got):\n%s", diff)
				}
			}
			if got := grants.LastOwner(existing, "payments"); got != c.last {
				t.Errorf("last owner: want %v, got %v", c.last, got)
			}
		})
	}
	t.Run("a controller's flags are taken off", func(t *testing.T) {
		desired := grants.For(payments(), legacy).Self[0].Role
		existing := desired.DeepCopy()
		existing.OwnerReferences[0].Controller = &yes
		if got := grants.Judge(existing, desired); got != grants.Drift {
			t.Errorf("want Drift, got %s", got)
		}
	})
}

func TestOwnersChanged(t *testing.T) {
	cases := map[string]struct {
		change func(*rbacv1.ClusterRole)
		want   []string
		only   bool
	}{
		"an owner comes": {func(r *rbacv1.ClusterRole) { r.OwnerReferences = append(r.OwnerReferences, owned("new", "3")...) },
			[]string{"new"}, true},
		"an owner is marked":  {func(r *rbacv1.ClusterRole) { r.OwnerReferences[1].UID = grants.Marked }, []string{"shop"}, true},
		"an owner goes":       {func(r *rbacv1.ClusterRole) { r.OwnerReferences = r.OwnerReferences[1:] }, []string{"payments"}, true},
		"an owner is doubled": {func(r *rbacv1.ClusterRole) { r.OwnerReferences = append(r.OwnerReferences, r.OwnerReferences[0]) }, nil, false},
		"a rule changes too":  {func(r *rbacv1.ClusterRole) { r.OwnerReferences[1].UID = grants.Marked; r.Rules = nil }, nil, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := grants.For(payments(), legacy).Self[0].Role
			before.OwnerReferences = owned("payments", "1", "shop", "2")
			after := before.DeepCopy()
			after.ResourceVersion = "2"
			c.change(after)
			got, only := grants.OwnersChanged(before, after)
			if diff := cmp.Diff(c.want, got); diff != "" && c.only || only != c.only {
				t.Errorf("only %v, want %v (-want +got):\n%s", only, c.only, diff)
			}
		})
	}
}

// While a role has both forms of impersonation, its other owners must learn that an owner has left: only they can remove the form that it
// alone still needed.
func TestAnOwnerThatNeededTheOldFormLeaves(t *testing.T) {
	t.Run("ACC-R28 when an owner leaves a role that has both forms of impersonation, its other "+
		"owners remove the form that it alone needed", func(t *testing.T) {
		before := grants.For(payments(), in(both)).Self[0].Role
		before.OwnerReferences = owned("payments", "1", "shop", "2")
		after := before.DeepCopy()
		after.ResourceVersion, after.OwnerReferences[1].UID = "2", grants.Marked
		if got, only := grants.OwnersChanged(before, after); only {
			t.Errorf("only %v learn of it", got)
		}
	})
}

func TestExpected(t *testing.T) {
	for key, object := range samples(t) {
		expected, ok := grants.Expected(object)
		if !ok || grants.KeyOf(expected) != key {
			t.Errorf("%s: got %v, %v", key, expected, ok)
			continue
		}
		object.SetOwnerReferences(nil)
		if !grants.Removable(object, expected) {
			t.Errorf("%s is not known for ours without its owner", key)
		}
	}
	foreign := grants.For(payments(), legacy).Sudo.Role
	foreign.Name = "warren:sudo:shop" // its labels still name payments
	if expected, ok := grants.Expected(foreign); ok {
		t.Errorf("want nothing expected of %s, got %v", foreign.Name, expected)
	}
}
