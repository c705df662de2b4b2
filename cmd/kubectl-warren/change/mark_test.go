package change

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

func TestTreeUIDOfAHaltedNamespace(t *testing.T) {
	halted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{v1alpha1.LabelParent: "gone"}}}
	_, err := TreeUID(t.Context(), fake.NewClientBuilder().WithObjects(halted).Build(), "web")
	if err == nil || !strings.Contains(err.Error(), "web is below gone") || strings.Contains(err.Error(), "set-type") {
		t.Errorf("%v", err)
	}
}
