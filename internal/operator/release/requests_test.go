package release

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

func TestReleaseEndsSudoOnRequest(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	binding := func(namespace, name, access string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.LabelAccess: access}}}
	}
	start := func() (*releaser, *fake.FakeMetadataClient, *bytes.Buffer) {
		api := fake.NewSimpleMetadataClient(scheme, binding("warren-sudo", "r1", "request"), binding("warren-sudo", "other", "operator"),
			binding("payments", "warren:sudo-requests", "request"))
		out := &bytes.Buffer{}
		return &releaser{metadata: api, out: out}, api, out
	}
	t.Run("REQ-E13 manager release ends sudo on request before it deletes policies, and leaves the rights of the trees", func(t *testing.T) {
		r, api, out := start()
		if err := r.endRequests(t.Context()); err != nil {
			t.Fatal(err)
		}
		for name, stays := range map[string]bool{"warren-sudo/r1": false, "warren-sudo/other": true, "payments/warren:sudo-requests": true} {
			namespace, name, _ := strings.Cut(name, "/")
			_, err := api.Resource(roleBindings).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) == stays {
				t.Errorf("%s: %v", name, err)
			}
		}
		if out.String() != "ended sudo on request of 1 SudoRequests\n" {
			t.Error(out.String())
		}
	})
	t.Run("without the right", func(t *testing.T) {
		r, api, out := start()
		api.PrependReactor("delete", "rolebindings", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(roleBindings.GroupResource(), "r1", errors.New("no"))
		})
		if err := r.endRequests(t.Context()); err != nil || !strings.Contains(out.String(), "ends at its time") {
			t.Errorf("%v, %s", err, out.String())
		}
	})
}
