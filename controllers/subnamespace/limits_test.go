package subnamespace

import (
	"runtime"
	"testing"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
)

// oneEach returns a reconciler with two trees, a and b, each of which has room for one sub-namespace.
func oneEach() *Reconciler {
	x := view.New(forest.Rules{Limits: v1alpha1.Limits{SubNamespaces: new(int32(1))}})
	for _, root := range []string{"a", "b"} {
		x.Observe(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: root, UID: "1", ResourceVersion: "1", Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot},
		}})
	}
	r := &Reconciler{View: x}
	r.resetState()
	return r
}

func wanted(parent, name string) *v1alpha1.SubNamespace {
	return &v1alpha1.SubNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: parent, Name: name}}
}

func TestReserve(t *testing.T) {
	t.Run("SUB-L6 a namespace that is being created in one tree takes no room in another", func(t *testing.T) {
		r := oneEach()
		if release, v := r.waiting.reservePlace(wanted("a", "x")); release == nil {
			t.Fatalf("there is room in an empty tree, and it says %q", v.message)
		}
		if release, v := r.waiting.reservePlace(wanted("b", "y")); release == nil {
			t.Errorf("a namespace of another tree is under way, and it says %q", v.message)
		}
		if release, _ := r.waiting.reservePlace(wanted("a", "z")); release != nil {
			t.Error("the tree has room for one, which is under way")
		}
	})
	t.Run("SUB-L6 a creation that has failed takes no room in its own tree", func(t *testing.T) {
		r := oneEach()
		release, _ := r.waiting.reservePlace(wanted("a", "x"))
		release()
		if again, v := r.waiting.reservePlace(wanted("a", "y")); again == nil {
			t.Errorf("nothing is under way, and it says %q", v.message)
		}
	})
	t.Run("SUB-L8 a creation in tree b that ends without a namespace frees no room in tree a, where a namespace of that name is being "+
		"created", func(t *testing.T) {
		r := oneEach()
		if release, v := r.waiting.reservePlace(wanted("a", "x")); release == nil {
			t.Fatalf("there is room in an empty tree, and it says %q", v.message)
		}
		release, _ := r.waiting.reservePlace(wanted("b", "x"))
		release()
		if release, _ := r.waiting.reservePlace(wanted("a", "y")); release != nil {
			t.Error("the tree has room for one, which is under way")
		}
	})
}

func TestFullTrees(t *testing.T) {
	t.Run("SUB-L9 after trees reached their limit, no earlier state of the forest stays in memory", func(t *testing.T) {
		r := oneEach()
		var old []weak.Pointer[forest.Snapshot]
		for _, root := range []string{"a", "b"} {
			release, _ := r.waiting.reservePlace(wanted(root, root+"-x"))
			if again, _ := r.waiting.reservePlace(wanted(root, root+"-y")); again != nil {
				t.Fatal("the tree has room for one, which is under way")
			}
			release()
			old = append(old, weak.Make(r.View.Snapshot()))
			r.View.Observe(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: root + "-other", UID: "3", ResourceVersion: "1"}})
		}
		runtime.GC()
		for _, snapshot := range old {
			if snapshot.Value() != nil {
				t.Error("a forest that was replaced stays in memory")
			}
		}
		runtime.KeepAlive(r)
	})
}
