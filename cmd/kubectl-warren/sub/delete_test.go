package sub

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

func TestDeletedTwice(t *testing.T) {
	t.Run("SUB-X42 delete of a namespace that is being deleted says so, and does not advise to put its SubNamespace back", func(t *testing.T) {
		ending := build.Namespace("pay-web")
		ending.Labels = map[string]string{v1alpha1.LabelParent: "payments", v1alpha1.LabelBound: "true"}
		ending.Finalizers = []string{"example.com/held"}
		ending.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time}
		_, _, err := findSub(t.Context(), clusterOf(t, ending), "", "pay-web")
		const want = "namespace pay-web is being deleted already: kubectl warren describe pay-web"
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	})
}
