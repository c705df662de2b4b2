package access

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

const grace = 2 * time.Second

// twoTenants is a cluster with the tenants payments and shop, whose sudoer is bob. Below payments are pay-web and halted; no copy reaches
// halted. It is the client and the view of switches.
type twoTenants struct {
	client.Client
	trees
	t        *testing.T
	objects  grants.Actual
	switches *switches
	told     map[string]v1alpha1.SudoMode // by tenant: status.sudo.mode
}

func newTwoTenants(t *testing.T) *twoTenants {
	c := &twoTenants{t: t, trees: trees{"payments": "payments", "pay-web": "payments", "shop": "shop"},
		objects: grants.Actual{}, told: map[string]v1alpha1.SudoMode{}}
	c.start(v1alpha1.SudoLegacy)
	c.pass("payments")
	c.pass("shop")
	return c
}

// start begins an operator with this mode.
func (c *twoTenants) start(mode v1alpha1.SudoMode) {
	c.switches = newSwitches(&Reconciler{Config: Settings{SudoMode: mode}, View: c, Timing: Timing{SwitchGrace: grace},
		objects: &objectStore{client: c, live: c, recent: newRecent(time.Minute, neverRead)}})
}

// pass brings the sudo of a tenant to what chooseForms returns.
func (c *twoTenants) pass(name string) {
	tenant := &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	tenant.Spec.Sudoers = []v1alpha1.Subject{{Kind: v1alpha1.SubjectUser, Name: "bob"}}
	facts, actual := grants.Facts{}, grants.Actual{}
	for _, key := range grants.For(tenant, facts).Keys() {
		actual.Put(key, c.objects[key])
	}
	if _, err := c.switches.chooseForms(c.t.Context(), tenant, &facts, actual); err != nil {
		c.t.Fatal(err)
	}
	c.told[name] = facts.Mode
	objects := grants.For(tenant, facts)
	for _, pair := range objects.SudoPairs() {
		for _, desired := range []grants.Object{pair.Role, pair.Binding} {
			if existing := actual[grants.KeyOf(desired)]; existing != nil {
				desired = grants.Restore(existing, desired)
			}
			c.objects.Put(grants.KeyOf(desired), desired)
		}
	}
	c.objects.Put(grants.KeyOf(objects.SudoOn), objects.SudoOn)
}

// copyDown copies the RoleBinding warren:sudo of payments to pay-web.
func (c *twoTenants) copyDown() {
	root := c.objects[grants.Key{Kind: "RoleBinding", Namespace: "payments", Name: grants.SudoOnBinding}]
	copied := root.DeepCopyObject().(grants.Object)
	copied.SetNamespace("pay-web")
	c.objects.Put(grants.KeyOf(copied), copied)
}

// forms returns the forms of the roles of payments, shop and bob.
func (c *twoTenants) forms() string {
	text := ""
	for _, name := range []string{grants.SudoName("payments"), grants.SudoName("shop"), grants.SelfName("bob")} {
		forms := grants.FormsIn(c.objects[grants.Key{Kind: "ClusterRole", Name: name}].(*rbacv1.ClusterRole))
		text += map[grants.Forms]string{{Legacy: true}: "l", {Constrained: true}: "c", {Legacy: true, Constrained: true}: "b"}[forms]
	}
	return text
}

func (c *twoTenants) requireForms(when, want string) {
	c.t.Helper()
	if got := c.forms(); got != want {
		c.t.Errorf("%s: the forms of payments, shop and bob are %s, want %s", when, got, want)
	}
}

func (c *twoTenants) Living(root string) []string {
	if root == "payments" {
		return []string{"payments", "halted", "pay-web"}
	}
	return []string{root}
}

func (c *twoTenants) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	at := grants.KeyOf(into.(grants.Object))
	at.Namespace, at.Name = key.Namespace, key.Name
	switch existing := c.objects[at].(type) {
	case nil:
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	case *rbacv1.ClusterRole:
		existing.DeepCopyInto(into.(*rbacv1.ClusterRole))
	case *rbacv1.RoleBinding:
		existing.DeepCopyInto(into.(*rbacv1.RoleBinding))
	default:
		return fmt.Errorf("%T isn't read here", existing)
	}
	return nil
}

// A tenant loses the old form when the new one has been in place for the time of grace in each of its namespaces.
func TestOldFormGoesLast(t *testing.T) {
	t.Run("ACC-C07 a tenant loses the Legacy form 2 s after its last sub-namespace got RoleBinding warren:sudo, and not "+
		"before", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newTwoTenants(t)
			c.requireForms("before", "lll")
			c.start(v1alpha1.SudoConstrained)
			c.pass("payments")
			c.requireForms("the other tenant keeps its form", "blb")
			for range 3 {
				time.Sleep(grace)
				c.pass("payments")
				c.requireForms("pay-web lacks its RoleBinding", "blb")
			}
			c.copyDown()
			c.pass("payments")
			c.pass("shop")
			c.requireForms("API servers see it a little later", "bbb")
			if diff := cmp.Diff(map[string]v1alpha1.SudoMode{"payments": v1alpha1.SudoLegacy, "shop": v1alpha1.SudoLegacy}, c.told); diff != "" {
				t.Error("the status shows the old mode", diff)
			}
			time.Sleep(grace)
			c.pass("payments")
			c.requireForms("shop needs the old form of bob's pair", "cbb")
			c.pass("shop")
			c.pass("shop")
			time.Sleep(grace)
			c.pass("shop")
			c.requireForms("after", "ccc")
			if diff := cmp.Diff(map[string]v1alpha1.SudoMode{"payments": v1alpha1.SudoConstrained, "shop": v1alpha1.SudoConstrained},
				c.told); diff != "" {
				t.Error(diff)
			}
		})
	})
}

// What an operator left when it was killed decides what the next one writes.
func TestSwitchAfterRestart(t *testing.T) {
	t.Run("ACC-C08 restarted during a switch, the operator removes the old form everywhere and does not write it again; if that is "+
		"wanted again, tenants first get both", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newTwoTenants(t)
			c.start(v1alpha1.SudoConstrained)
			c.pass("payments")
			c.copyDown()
			c.pass("payments")
			time.Sleep(grace)
			c.pass("payments")
			c.pass("shop")
			c.requireForms("when it is killed", "cbb")

			c.start(v1alpha1.SudoConstrained)
			c.pass("payments")
			c.requireForms("the old form does not come back", "cbb")
			c.pass("shop")
			time.Sleep(grace)
			c.pass("shop")
			c.requireForms("(1) the switch ends", "ccc")

			c.start(v1alpha1.SudoLegacy)
			c.pass("shop")
			c.requireForms("shop first", "cbb")
			c.start(v1alpha1.SudoConstrained) // wanted again
			c.pass("payments")
			c.pass("shop")
			time.Sleep(grace)
			c.pass("shop")
			c.requireForms("(2) back to what was wanted before", "ccc")
		})
	})
}

// A form that another client writes into a role is drift: it is not kept for a while, as the other form of a switch is.
func TestFormsThatOthersWrite(t *testing.T) {
	c := newTwoTenants(t)
	c.start(v1alpha1.SudoConstrained)
	role := c.objects[grants.Key{Kind: "ClusterRole", Name: grants.SudoName("shop")}].(*rbacv1.ClusterRole)
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"groups"}, Verbs: []string{"impersonate"}})
	c.pass("shop")
	c.requireForms("after one pass", "lcb")
}
