package access

import (
	"errors"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/warren-tenancy/warren/internal/grants"
)

// trees maps a namespace to the tenant in whose tree it lies.
type trees map[string]string

func (trees) Owns(string, types.UID) bool             { return true }
func (t trees) InTree(namespace, root string) bool    { return t[namespace] == root }
func (t trees) BelongsTo(namespace, root string) bool { return t[namespace] == root }
func (trees) UID(string) types.UID                    { return "" }
func (trees) Living(root string) []string             { return []string{root} }

func holderIn(namespace string, uid types.UID) holder {
	return holder{key: bindingIn(namespace), uid: uid}
}

func bindingIn(namespace string) grants.Key { return grants.KeyOf(roleBinding(namespace)) }

func roleBinding(namespace string) *rbacv1.RoleBinding {
	b := &rbacv1.RoleBinding{}
	b.Namespace, b.Name = namespace, "b"
	return b
}

func forbiddenList() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "rolebindings"}, "", errors.New("no"))
}

func wokenOnce(t *holderTable) (woken bool) {
	select {
	case <-t.wake:
		return true
	default:
		return false
	}
}

func TestHolderTable(t *testing.T) {
	table, view := newHolderTable(), trees{"shop": "shop"}
	if _, needless := table.beginLook(); !needless {
		t.Error("a look is made although no tenant has a sudoer")
	}
	if state := table.judgeTenant("shop", false, nil, view); !state.pending || !wokenOnce(table) {
		t.Errorf("the first sudoer doesn't wait for a look: %+v", state)
	}

	asked, needless := table.beginLook()
	if needless || !asked["shop"] {
		t.Errorf("the look isn't for the tenant that asked: %v", asked)
	}
	if told := table.noteFailedLook(asked, forbiddenList()); !slices.Equal(told, []string{"shop"}) {
		t.Errorf("the tenant doesn't learn that the look was refused: %v", told)
	}
	if state := table.judgeTenant("shop", false, nil, view); !state.pending || state.forbidden == "" {
		t.Errorf("the tenant can't say why it waits: %+v", state)
	}
	asked, _ = table.beginLook()
	if told := table.noteFailedLook(asked, forbiddenList()); len(told) > 0 {
		t.Errorf("the second refusal is told again: %v", told)
	}

	outside, inside := holderIn("other", "1"), holderIn("shop", "2")
	asked, _ = table.beginLook()
	if told := table.noteLook(asked, map[string][]holder{"shop-sudoers": {outside, inside}}); !slices.Equal(told, []string{"shop"}) {
		t.Errorf("the tenant that waited isn't told of the look: %v", told)
	}
	state := table.judgeTenant("shop", false, nil, view)
	if state.pending || state.forbidden != "" || !slices.Contains(state.inTheWay, outside) {
		t.Errorf("a binding from before the first grant isn't in its way: %+v", state)
	}
	if !slices.Contains(table.inTheWay()["shop"], outside) {
		t.Errorf("nobody looks at that binding again: %v", table.inTheWay())
	}
	if state := table.judgeTenant("shop", true, nil, view); !slices.Equal(state.gifts, []holder{outside}) {
		t.Errorf("after the first grant, a binding outside of the tree is no gift: %+v", state)
	}
	table.dropHolder("shop-sudoers", outside)
	if state := table.judgeTenant("shop", true, nil, view); len(state.gifts) > 0 {
		t.Errorf("a binding that went is still a gift: %+v", state)
	}
	table.judgeTenant("club", false, nil, view)
	asked, _ = table.beginLook()
	if told := table.noteFailedLook(asked, forbiddenList()); !slices.Equal(told, []string{"club"}) {
		t.Errorf("a refusal after a look that was let through isn't told: %v", told)
	}
	table.forgetTenant("shop")
	if state := table.judgeTenant("shop", false, nil, view); !state.pending {
		t.Errorf("after the last sudoer left, the next doesn't count as the first: %+v", state)
	}
}
