package forest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/warren-tenancy/warren/internal/forest"
)

func TestNamespaceOf(t *testing.T) {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "x", UID: "uid-x", ResourceVersion: "7", Labels: map[string]string{"team": "a"},
		Annotations:       map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "note": "b"},
		DeletionTimestamp: &metav1.Time{},
	}}
	want := &forest.Namespace{
		Name: "x", UID: "uid-x", ResourceVersion: "7", Labels: map[string]string{"team": "a"},
		Annotations: map[string]string{"note": "b"}, Terminating: true,
	}
	if diff := cmp.Diff(want, forest.NamespaceOf(n)); diff != "" {
		t.Error(diff)
	}
	if len(n.Annotations) != 2 {
		t.Error("the object of the cache was changed")
	}
}
