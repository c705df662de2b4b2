package grants_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

func told(plan grants.Plan) []string {
	lines := []string{}
	for _, step := range plan.Steps {
		line := fmt.Sprintf("%s %s", step.Verb, grants.KeyOf(step.Desired))
		if step.Needs != (grants.Key{}) {
			line += " after " + step.Needs.String()
		}
		if step.Role != nil {
			line += " unless " + grants.KeyOf(step.Role).String() + " is ours"
		}
		lines = append(lines, line)
	}
	for _, key := range plan.Conflicts {
		lines = append(lines, "conflict "+key.String())
	}
	return lines
}

// carry carries out a plan on actual, as the controller would.
func carry(plan grants.Plan, tenant string, actual grants.Actual) {
	for _, step := range plan.Steps {
		key := grants.KeyOf(step.Desired)
		existing := actual[key]
		switch step.Verb {
		case grants.VerbRemove:
			actual.Put(key, nil)
		case grants.VerbNarrow:
			if narrowed, ok := grants.Narrow(existing, step.Desired); ok {
				actual.Put(key, narrowed)
			}
		case grants.VerbRelease:
			if step.Last && grants.LastOwner(existing, tenant) {
				actual.Put(key, nil)
			} else if released, ok := grants.Release(existing, tenant); ok {
				actual.Put(key, released)
			}
		default:
			if existing == nil || grants.MustRecreate(existing, step.Desired) {
				existing = step.Desired
			}
			actual.Put(key, grants.Restore(existing, step.Desired))
		}
	}
}

func TestPlan(t *testing.T) {
	sudoRole := grants.Key{Kind: "ClusterRole", Name: "warren:sudo:payments"}
	sudoBinding := grants.Key{Kind: "ClusterRoleBinding", Name: "warren:sudo:payments"}
	selfRole := grants.Key{Kind: "ClusterRole", Name: "warren:self:bob"}
	selfBinding := grants.Key{Kind: "ClusterRoleBinding", Name: "warren:self:bob"}
	usersBinding := grants.Key{Kind: "RoleBinding", Namespace: "payments", Name: "warren:users"}
	cases := map[string]struct {
		edit     func(*v1alpha1.LNamespace)
		world    func(grants.Actual)
		withheld grants.Withheld
		want     []string
	}{
		"ACC-R11 a tenant whose access objects are as wanted needs no write": {want: []string{}},
		"one user more": {
			edit: func(l *v1alpha1.LNamespace) { l.Spec.Users = append(l.Spec.Users, user("zed")) },
			want: []string{"ensure RoleBinding payments/warren:users"},
		},
		"one manager less": {
			edit: func(l *v1alpha1.LNamespace) { l.Spec.Managers = nil },
			want: []string{"ensure ClusterRoleBinding warren:edit:payments"},
		},
		"a sudoer less, a user less, one sudoer more": {
			edit: func(l *v1alpha1.LNamespace) { l.Spec.Sudoers[0] = user("eve"); l.Spec.Users = l.Spec.Users[1:] },
			want: []string{
				"ensure ClusterRoleBinding warren:sudo:payments", "ensure RoleBinding payments/warren:users",
				"release ClusterRole warren:self:bob", "release ClusterRoleBinding warren:self:bob",
				"ensure ClusterRole warren:self:eve", "ensure ClusterRoleBinding warren:self:eve after ClusterRole warren:self:eve",
			},
		},
		"groups leave: the binding is narrowed before the role": {
			edit: func(l *v1alpha1.LNamespace) { l.Spec.Sudoers = l.Spec.Sudoers[:1] },
			want: []string{
				"narrow ClusterRoleBinding warren:sudo:payments", "ensure ClusterRole warren:sudo:payments",
				"ensure ClusterRoleBinding warren:sudo:payments after ClusterRole warren:sudo:payments",
			},
		},
		"ACC-R03 the binding to a ClusterRole that is not ours is removed": {
			world: func(a grants.Actual) {
				a[sudoRole] = &rbacv1.ClusterRole{ObjectMeta: a[sudoRole].(*rbacv1.ClusterRole).ObjectMeta}
				a[sudoRole].SetOwnerReferences(nil)
			},
			want: []string{
				"remove ClusterRoleBinding warren:sudo:payments unless ClusterRole warren:sudo:payments is ours",
				"conflict ClusterRole warren:sudo:payments",
			},
		},
		"FLT-M16 a shared binding is deleted unless the ClusterRole of its name is the operator's, and a conflict is reported": {
			world: func(a grants.Actual) { a[selfRole].SetLabels(nil) },
			want: []string{
				"remove ClusterRoleBinding warren:self:bob unless ClusterRole warren:self:bob is ours",
				"conflict ClusterRole warren:self:bob",
			},
		},
		"FLT-M16 a shared binding to another ClusterRole is deleted unless the ClusterRole of its name is the operator's, and made again": {
			world: func(a grants.Actual) {
				delete(a, selfRole)
				a[selfBinding].(*rbacv1.ClusterRoleBinding).RoleRef.Name = "cluster-admin"
			},
			want: []string{
				"remove ClusterRoleBinding warren:self:bob unless ClusterRole warren:self:bob is ours",
				"ensure ClusterRole warren:self:bob", "ensure ClusterRoleBinding warren:self:bob after ClusterRole warren:self:bob",
			},
		},
		"ACC-R06 while the group is in use, the sudo pair is removed": {
			withheld: grants.Withheld{Sudo: true},
			want:     []string{"remove ClusterRoleBinding warren:sudo:payments", "remove ClusterRole warren:sudo:payments"},
		},
		"nobody knows yet whether the group is in use": {
			edit:     func(l *v1alpha1.LNamespace) { l.Spec.Sudoers = append(l.Spec.Sudoers[1:], group("more")) },
			withheld: grants.Withheld{SudoAdditions: true},
			want: []string{
				"narrow ClusterRoleBinding warren:sudo:payments",
				"release ClusterRole warren:self:bob", "release ClusterRoleBinding warren:self:bob",
			},
		},
		"while it is being deleted a list may shrink only": {
			edit: func(l *v1alpha1.LNamespace) {
				l.Spec.Sudoers[0], l.Spec.Users = user("eve"), append(l.Spec.Users, user("zed"))
			},
			withheld: grants.Withheld{Additions: true},
			want: []string{
				"narrow ClusterRoleBinding warren:sudo:payments",
				"release ClusterRole warren:self:bob", "release ClusterRoleBinding warren:self:bob",
			},
		},
		"ACC-R09 without the ClusterRole of users, their binding is removed": {
			withheld: grants.Withheld{Users: true},
			want:     []string{"remove RoleBinding payments/warren:users"},
		},
		"ACC-R09 no role for users, and a foreign binding in the place of theirs": {
			world: func(a grants.Actual) {
				binding := a[usersBinding].(*rbacv1.RoleBinding)
				binding.RoleRef.Name = "foreign"
				binding.SetOwnerReferences(nil)
			},
			withheld: grants.Withheld{Users: true},
			want:     []string{},
		},
		"everything is withdrawn": {
			withheld: grants.Withheld{Everything: true},
			want: []string{
				"narrow ClusterRoleBinding warren:sudo:payments",
				"release ClusterRole warren:self:bob", "release ClusterRoleBinding warren:self:bob",
				"remove RoleBinding payments/warren:users", "remove RoleBinding payments/warren:sudoers",
				"remove ClusterRoleBinding warren:sudo:payments", "remove ClusterRole warren:sudo:payments",
				"remove ClusterRoleBinding warren:edit:payments", "remove ClusterRole warren:edit:payments",
			},
		},
		"withdrawn though the role has lost its owner and is of the other form": {
			world: func(a grants.Actual) {
				role := grants.For(payments(), grants.Facts{Forms: grants.FormsOf(v1alpha1.SudoConstrained)}).Sudo.Role
				role.SetOwnerReferences(nil)
				for key := range a {
					if key != sudoRole {
						delete(a, key)
					}
				}
				a[sudoRole] = role
			},
			withheld: grants.Withheld{Everything: true},
			want:     []string{"remove ClusterRole warren:sudo:payments"},
		},
		"ACC-D04 withdrawn after the collector took the owners": {
			edit: func(l *v1alpha1.LNamespace) { l.Spec.Sudoers = nil },
			world: func(a grants.Actual) {
				for key := range a {
					if key != sudoBinding {
						delete(a, key)
					}
				}
				a[sudoBinding].SetOwnerReferences(nil)
			},
			withheld: grants.Withheld{Everything: true},
			want: []string{
				"narrow ClusterRoleBinding warren:sudo:payments", "remove ClusterRoleBinding warren:sudo:payments",
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tenant, actual := payments(), samples(t)
			if c.edit != nil {
				c.edit(tenant)
			}
			if c.world != nil {
				c.world(actual)
			}
			objects := grants.For(tenant, legacy)
			plan := grants.PlanFor(tenant.Name, objects, c.withheld, actual)
			if diff := cmp.Diff(c.want, told(plan)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			carry(plan, tenant.Name, actual)
			if again := grants.PlanFor(tenant.Name, objects, c.withheld, actual); len(again.Steps) != 0 {
				t.Errorf("a second plan is not empty: %v", told(again))
			}
		})
	}
}

func TestPlanFromNothingWritesRolesBeforeBindings(t *testing.T) {
	plan := grants.PlanFor("payments", grants.For(payments(), legacy), grants.Withheld{}, grants.Actual{})
	want := []string{
		"ensure RoleBinding payments/warren:sudoers", "ensure RoleBinding payments/warren:users",
		"ensure ClusterRole warren:sudo:payments", "ensure ClusterRoleBinding warren:sudo:payments after ClusterRole warren:sudo:payments",
		"ensure ClusterRole warren:edit:payments", "ensure ClusterRoleBinding warren:edit:payments after ClusterRole warren:edit:payments",
		"ensure ClusterRole warren:self:bob", "ensure ClusterRoleBinding warren:self:bob after ClusterRole warren:self:bob",
	}
	if diff := cmp.Diff(want, told(plan)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
