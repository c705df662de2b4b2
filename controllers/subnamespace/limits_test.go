package subnamespace

import (
	"testing"

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
	r.reset()
	return r
}

func wanted(parent, name string) *v1alpha1.SubNamespace {
	return &v1alpha1.SubNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: parent, Name: name}}
}

func TestReserve(t *testing.T) {
	t.Run("SUB-L6 what is under way in another tree takes no room", func(t *testing.T) {
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
	t.Run("SUB-L6 and none in its own when it has failed", func(t *testing.T) {
		r := oneEach()
		release, _ := r.waiting.reservePlace(wanted("a", "x"))
		release()
		if again, v := r.waiting.reservePlace(wanted("a", "y")); again == nil {
			t.Errorf("nothing is under way, and it says %q", v.message)
		}
	})
}
