package copies

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// slowServer records at each read of a source whether the runner's lock is free.
type slowServer struct {
	copying.API
	isFree func() bool
	free   []bool
}

func (s *slowServer) Object(_ context.Context, _ schema.GroupVersionResource, slot copies.Slot) (map[string]any, error) {
	s.free = append(s.free, s.isFree())
	if !s.isFree() {
		return nil, errors.New("the answer could not be taken in")
	}
	return map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{
		"namespace": slot.Namespace, "name": slot.Name, "uid": "u", "resourceVersion": "10",
		"labels": map[string]any{v1alpha1.LabelPropagate: v1alpha1.ModeUpdate},
	}}, nil
}

// A request may take long. A worker that held the lock during a request would stop the watches, the other workers and the readiness check.
func TestNoRequestIsSentUnderTheLock(t *testing.T) {
	v := view.New(forest.Rules{})
	v.Observe(namespaceAt("acme", "1", v1alpha1.LabelType, v1alpha1.TypeRoot))
	v.Observe(namespaceAt("child", "2", v1alpha1.LabelParent, "acme"))
	settings := copyengine.Settings{
		Kinds: []copyengine.Kind{{GroupVersionKind: secretKind, Mode: copies.OptIn}}, Timing: copyengine.DefaultTiming(),
	}
	api := &slowServer{}
	r := newRunner(Options{Options: copying.Options{View: v, Events: record.NewFakeRecorder(10)}}, settings, api, nil)
	r.requests.Unshared()
	api.isFree = func() bool {
		taken := make(chan struct{})
		go r.Read(func(*copyengine.State) { close(taken) })
		select {
		case <-taken:
			return true
		case <-time.After(time.Second):
			return false
		}
	}
	source := copies.Slot{Kind: secretKind.GroupKind(), Namespace: "acme", Name: "s"}
	for _, role := range settings.Kinds[0].Roles() {
		watch := copyengine.Watch{Kind: source.Kind, Role: role}
		listed := copyengine.Listed{Watch: watch, ResourceVersion: "10"}
		if role != copyengine.CopiesAlone {
			listed.Objects = []*metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{
				Namespace: "acme", Name: "s", UID: types.UID("u"), ResourceVersion: "10",
				Labels: map[string]string{v1alpha1.LabelPropagate: v1alpha1.ModeUpdate},
			}}}
		}
		r.Apply(listed)
		r.Apply(copyengine.WatchChanged{Watch: watch, Status: watchset.Status{
			State: watchset.Synced, Kind: secretKind, Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"},
		}})
	}
	r.WorkOnKey(t.Context(), copyengine.Key{Task: copyengine.LookAtSource, Slot: source})
	if len(api.free) != 1 || !api.free[0] {
		t.Errorf("reads of the source, and whether the lock was free then: %v", api.free)
	}
}

// A namespace leaves the forest. Controller ownrights may ask before the State has learnt of it, and must not take the operator's rights
// from copies that no watch has shown yet.
func TestANamespaceThatHasJustLeftMayHoldCopies(t *testing.T) {
	t.Run("SEC-O48 a namespace that has just left the forest may hold copies, until the copying "+
		"engine has learnt of that", func(t *testing.T) {
		v := view.New(forest.Rules{})
		v.MarkSynced()
		v.Observe(namespaceAt("acme", "1", v1alpha1.LabelType, v1alpha1.TypeRoot))
		v.Observe(namespaceAt("child", "2", v1alpha1.LabelParent, "acme"))
		settings := copyengine.Settings{
			Kinds: []copyengine.Kind{{GroupVersionKind: secretKind, Mode: copies.OptIn}}, Timing: copyengine.DefaultTiming(),
		}
		r := newRunner(Options{Options: copying.Options{View: v, Events: record.NewFakeRecorder(10)}}, settings, &slowServer{}, nil)
		before := v.Snapshot()
		v.Observe(namespaceAt("child", "3", "example.com/left", "true"))
		if !r.HoldsCopies("child") {
			t.Error("there are no copies by a forest in which the namespace has not left yet")
		}
		r.Apply(copyengine.ForestChanged{Old: before, New: v.Snapshot(), Namespaces: []string{"child"}})
		if r.HoldsCopies("child") {
			t.Error("it holds copies for ever")
		}
	})
}
