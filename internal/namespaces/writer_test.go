package namespaces

import (
	"context"
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/forest"
)

// sent is an API server that takes down what a patch and a deletion ask for.
type sent struct {
	client.Client
	deletion client.DeleteOptions
	patch    struct {
		Metadata struct{ UID, ResourceVersion string }
	}
}

func (s *sent) Delete(_ context.Context, _ client.Object, options ...client.DeleteOption) error {
	s.deletion.ApplyOptions(options)
	return nil
}

func (s *sent) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	body, err := patch.Data(object)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, &s.patch)
}

type blind struct{}

func (blind) Observe(metav1.Object) {}

// A name is not an identity: somebody may have made another namespace of that name since the snapshot.
func TestWritesHoldForTheNamespaceOfTheSnapshot(t *testing.T) {
	api := &sent{}
	w := &Writer{Client: api, View: blind{}}
	n := &forest.Namespace{Name: "pay-web", UID: "read", ResourceVersion: "7"}
	if _, err := w.Patch(t.Context(), n, forest.Change{Labels: map[string]*string{"team": nil}}); err != nil {
		t.Fatal(err)
	}
	if got := api.patch.Metadata; got.UID != "read" || got.ResourceVersion != "7" {
		t.Errorf("patches %+v", got)
	}
	if err := w.Delete(t.Context(), n.Name, n.UID, n.ResourceVersion); err != nil {
		t.Fatal(err)
	}
	if p := api.deletion.Preconditions; p == nil || p.UID == nil || *p.UID != "read" || p.ResourceVersion == nil || *p.ResourceVersion != "7" {
		t.Errorf("deletes with the preconditions %v", p)
	}
}
