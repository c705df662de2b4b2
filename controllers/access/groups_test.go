package access

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// trees maps a namespace to the tenant whose tree has it.
type trees map[string]string

func (trees) Owns(string, types.UID) bool             { return true }
func (t trees) InTree(namespace, root string) bool    { return t[namespace] == root }
func (t trees) BelongsTo(namespace, root string) bool { return t[namespace] == root }
func (trees) IsTerminating(string) bool               { return false }
func (trees) UID(string) types.UID                    { return "" }
func (trees) Living(root string) []string             { return []string{root} }

// bindings answers lists and reads with the RoleBindings in items, or with err.
type bindings struct {
	client.Reader
	err   error
	items []rbacv1.RoleBinding
	lists int
	hangs time.Duration // how long each answer takes
}

func (b *bindings) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	b.lists++
	time.Sleep(b.hangs)
	if into, ok := list.(*rbacv1.RoleBindingList); ok {
		into.Items = slices.Clone(b.items)
	}
	return b.err
}

func bindingOfShop(namespace string) rbacv1.RoleBinding {
	b := rbacv1.RoleBinding{Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: "shop-sudoers"}}}
	b.Namespace, b.Name, b.UID = namespace, "standing", types.UID(namespace)
	return b
}

func TestFirstGrantWaitsForAScan(t *testing.T) {
	ctx, api := t.Context(), &bindings{}
	g := newGroups(trees{"shop-web": "shop"}, api, api, DefaultTiming())
	shop := &v1alpha1.LNamespace{}
	shop.Name = "shop"
	shop.Spec.Sudoers = []v1alpha1.Subject{{Kind: v1alpha1.SubjectUser, Name: "bob"}}
	binding := grants.For(shop, grants.Facts{Forms: grants.FormsOf(v1alpha1.SudoLegacy)}).Sudo.Binding
	judge := func() groupState { return g.decideGroupState(shop, binding, grants.Actual{}) }

	if _, err := g.reviewBindings(ctx); err != nil || api.lists > 0 {
		t.Errorf("bindings are listed though no tenant waits: %v, %d", err, api.lists)
	}
	if state := judge(); !state.pending {
		t.Errorf("the first sudoer doesn't wait for a scan: %+v", state)
	}
	api.err = apierrors.NewForbidden(schema.GroupResource{Resource: "rolebindings"}, "", errors.New("no"))
	if concerned, err := g.scanBindings(ctx); !slices.Equal(concerned, []string{"shop"}) || err == nil {
		t.Errorf("the tenant isn't requeued when scans begin to be refused: %v, %v", concerned, err)
	}
	if state := judge(); !state.pending || state.forbidden == "" {
		t.Errorf("the tenant can't say why it waits: %+v", state)
	}
	if concerned, _ := g.scanBindings(ctx); len(concerned) > 0 {
		t.Errorf("the second refusal requeues the tenant again: %v", concerned)
	}

	api.err, api.items = nil, []rbacv1.RoleBinding{bindingOfShop("plain"), bindingOfShop("shop-web")}
	if concerned, err := g.scanBindings(ctx); !slices.Equal(concerned, []string{"shop"}) || err != nil {
		t.Errorf("the tenant that waited isn't requeued: %v, %v", concerned, err)
	}
	state := judge()
	if state.pending || state.forbidden != "" || len(state.inTheWay) != 1 || state.inTheWay[0].key.Namespace != "plain" {
		t.Errorf("what stops the first grant is the binding outside of the tree: %+v", state)
	}
	if concerned, err := g.scanBindings(ctx); len(concerned) > 0 || err != nil {
		t.Errorf("a binding that is still there counts as gone: %v, %v", concerned, err)
	}
	api.items = api.items[1:]
	if concerned, err := g.scanBindings(ctx); !slices.Equal(concerned, []string{"shop"}) || err != nil {
		t.Errorf("the tenant isn't requeued when the binding is gone: %v, %v", concerned, err)
	}
	if len(judge().inTheWay) > 0 || judge().pending {
		t.Errorf("the grant goes on waiting: %+v", judge())
	}
}

// Scans go on while a binding stops a tenant's first grant, and end when none does.
func TestScansEndWithTheLastForeignBinding(t *testing.T) {
	t.Run("ACC-R24 when a binding that stopped the first grant is deleted, the tenant waits for the next scan to end, and no further "+
		"scan is made", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := &bindings{items: []rbacv1.RoleBinding{bindingOfShop("plain")}}
			g := newGroups(trees{}, api, api, DefaultTiming())
			look := func(waiting ...string) []holder {
				for _, tenant := range waiting {
					g.waiting[tenant] = true
				}
				again, err := g.reviewBindings(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(again)
				return g.found["shop"]
			}
			if found := look("shop"); len(found) != 1 {
				t.Fatalf("the scan found %v", found)
			}
			api.items = nil
			if found := g.found["shop"]; len(found) != 1 {
				t.Errorf("the first grant is made before the bindings are read again: %v", found)
			}
			if found := look("other"); len(found) > 0 {
				t.Errorf("after a scan for another tenant, %v still stops the first grant", found)
			}
			lists := api.lists
			if look(); api.lists != lists {
				t.Errorf("no tenant needs a scan, and one is made")
			}
		})
	})
}

// A conflict may hold up the first grant for days after the scan. What was bound since then stops that grant.
func TestFirstGrantTrustsNoOldScan(t *testing.T) {
	t.Run("ACC-R27 a binding that was made after the scan, while a conflict held up the first grant "+
		"of sudo, stops that grant", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := &bindings{}
			g := newGroups(trees{}, api, api, DefaultTiming())
			shop := &v1alpha1.LNamespace{}
			shop.Name = "shop"
			shop.Spec.Sudoers = []v1alpha1.Subject{{Kind: v1alpha1.SubjectUser, Name: "bob"}}
			binding := grants.For(shop, grants.Facts{Forms: grants.FormsOf(v1alpha1.SudoLegacy)}).Sudo.Binding
			judge := func() groupState { return g.decideGroupState(shop, binding, grants.Actual{}) }
			scan := func() {
				if _, err := g.scanBindings(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			judge()
			scan()
			if state := judge(); state.pending {
				t.Fatal("the first grant waits although the scan has just found nothing")
			}
			time.Sleep(time.Hour)
			api.items = []rbacv1.RoleBinding{bindingOfShop("plain")}
			if state := judge(); !state.pending {
				t.Fatal("the first grant is made by a scan that is an hour old")
			}
			scan()
			if state := judge(); state.pending || len(state.inTheWay) != 1 {
				t.Errorf("the new binding doesn't stop the first grant: %+v", state)
			}
		})
	})
}

// If a look hangs in an outage, the next one begins no later than GroupRetry after the end of that look.
func TestScanAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &bindings{hangs: time.Minute}
		g := newGroups(trees{}, api, api, DefaultTiming())
		g.waiting["shop"] = true
		again, err := g.reviewBindings(t.Context())
		if err != nil || again > g.timing.GroupRetry || time.Until(g.restUntil) > g.timing.GroupRetry {
			t.Errorf("the next look comes after %v, and may begin after %v: %v", again, time.Until(g.restUntil), err)
		}
	})
}
