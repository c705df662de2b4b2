package namespaces

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/forest"
)

// sent is an API server that records the preconditions of a patch and of a deletion.
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

// A name is not an identity: since the snapshot, another user may have replaced the namespace by one of the same name.
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

// ended is an API server with a namespace that is being deleted.
type ended struct {
	client.Client
	deletions int
}

func (e *ended) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	e.deletions++
	return apierrors.NewConflict(schema.GroupResource{Resource: "namespaces"}, "pay-web", errors.New("the version is another one"))
}

func (*ended) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.SetUID("read")
	object.SetResourceVersion("8")
	object.SetDeletionTimestamp(new(metav1.Now()))
	return nil
}

type seeing struct{ seen metav1.Object }

func (s *seeing) Observe(object metav1.Object) { s.seen = object }

// The watch is late: another user has deleted the namespace, so it has a newer version than in the snapshot.
func TestARefusedDeletionShowsTheNamespaceAsItIs(t *testing.T) {
	api, view := &ended{}, &seeing{}
	w := &Writer{Client: api, Live: api, View: view}
	if err := w.Delete(t.Context(), "pay-web", "read", "7"); !apierrors.IsConflict(err) {
		t.Errorf("returns %v", err)
	}
	if view.seen == nil || view.seen.GetDeletionTimestamp() == nil || view.seen.GetResourceVersion() != "8" {
		t.Errorf("the view has %v", view.seen)
	}
	if api.deletions != 1 {
		t.Errorf("deletes %d times", api.deletions)
	}
}
