package finalizers_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/warren-tenancy/warren/internal/finalizers"
	"github.com/warren-tenancy/warren/internal/newest"
)

// TestRemoveRecordsTheLastFinalizer checks which objects are known as deleted: those that the API server deletes, by UID, until Forget.
func TestRemoveRecordsTheLastFinalizer(t *testing.T) {
	const ours, other = "example.com/ours", "example.com/other"
	now := metav1.Now()
	cases := map[string]struct {
		deleted    *metav1.Time
		finalizers []string
		want       bool
	}{
		"the last finalizer of an object that is being deleted": {&now, []string{ours}, true},
		"another finalizer is left":                             {&now, []string{ours, other}, false},
		"nobody deletes the object":                             {nil, []string{ours}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "1", DeletionTimestamp: c.deleted,
				Finalizers: c.finalizers}}
			api := fake.NewClientBuilder().WithObjects(object).Build()
			key, read := client.ObjectKeyFromObject(object), &corev1.ConfigMap{}
			if err := api.Get(t.Context(), key, read); err != nil {
				t.Fatal(err)
			}
			old := read.DeepCopy() // what a cache still shows
			var known newest.Known
			if err := finalizers.Remove(t.Context(), api, read, ours, &known); err != nil {
				t.Fatal(err)
			}
			if !known.IsOutdated(old) {
				t.Error("what the cache shows is taken for new")
			}
			if got := known.IsOutdated(read); got != c.want {
				t.Errorf("the answer is outdated: %t, want %t", got, c.want)
			}
			successor := old.DeepCopy()
			if successor.UID = "2"; known.IsOutdated(successor) {
				t.Error("an object of the same name is taken for the one that is gone")
			}
			known.RecordChanged(old)
			if known.Forget(key); known.IsOutdated(old) {
				t.Error("what was forgotten is known")
			}
		})
	}
}
