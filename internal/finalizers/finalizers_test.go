package finalizers_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/warren-tenancy/warren/internal/finalizers"
)

// TestGoneRemembersTheLastFinalizer checks which objects Gone remembers: those that the API server deletes, by UID, until Forget.
func TestGoneRemembersTheLastFinalizer(t *testing.T) {
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
			var gone finalizers.Gone
			if err := gone.Remove(t.Context(), api, read, ours); err != nil {
				t.Fatal(err)
			}
			if got := gone.Has(old); got != c.want {
				t.Errorf("Has: %t, want %t", got, c.want)
			}
			successor := old.DeepCopy()
			successor.UID = types.UID("2")
			if gone.Has(successor) {
				t.Error("Has takes an object of the same name for the one that is gone")
			}
			if gone.Forget(key); gone.Has(old) {
				t.Error("Has remembers what was forgotten")
			}
		})
	}
}
