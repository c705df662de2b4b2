package subnamespace

import (
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
)

// In tree a, which has room for one, p is there and two SubNamespaces wait. Then p moves to tree b, and takes the older SubNamespace along.
// The younger one is judged while the older one is still ahead of it.
func TestWhoLeavesALineHasTheOthersJudgedAgain(t *testing.T) {
	t.Run("SUB-L10 when an older SubNamespace that waits for room moves to another tree, those "+
		"behind it are judged again", func(t *testing.T) {
		r := &Reconciler{View: view.New(forest.Rules{Limits: v1alpha1.Limits{SubNamespaces: new(int32(1))}})}
		r.resetState()
		versions := 0
		place := func(name, label, value string) {
			versions++
			r.View.Observe(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Name: name, UID: "1", ResourceVersion: strconv.Itoa(versions), Labels: map[string]string{label: value}}})
		}
		place("a", v1alpha1.LabelType, v1alpha1.TypeRoot)
		place("b", v1alpha1.LabelType, v1alpha1.TypeRoot)
		place("p", v1alpha1.LabelParent, "a")
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer queue.ShutDown()
		if err := r.line.Start(t.Context(), queue); err != nil {
			t.Fatal(err)
		}
		older, younger := wanted("p", "old"), wanted("a", "young")
		older.CreationTimestamp, younger.CreationTimestamp = metav1.NewTime(time.Unix(1, 0)), metav1.NewTime(time.Unix(9, 0))
		waits := func(sub *v1alpha1.SubNamespace) {
			t.Helper()
			if v, _ := r.createIfAllowed(t.Context(), sub); !v.inLine {
				t.Fatalf("%s does not wait: %+v", sub.Name, v)
			}
		}
		waits(older)
		waits(younger)
		place("p", v1alpha1.LabelParent, "b")
		waits(younger)
		if waits(older); queue.Len() == 0 {
			t.Error("the tree has room, and the younger one waits for ever")
		}
	})
}
