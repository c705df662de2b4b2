package copies

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/internal/copying"
)

// slowAPI answers each read of an object after a while.
type slowAPI struct{ copying.API }

func (slowAPI) Object(_ context.Context, r schema.GroupVersionResource, slot copies.Slot) (map[string]any, error) {
	time.Sleep(300 * time.Millisecond)
	return map[string]any{"apiVersion": r.GroupVersion().String(), "kind": slot.Kind.Kind,
		"metadata": map[string]any{"name": slot.Name, "namespace": slot.Namespace, "uid": "u", "resourceVersion": "1"}}, nil
}

// Kinds of two groups may have one name: Service of Kubernetes and of Knative, Ingress of two groups, Cluster of many.
func TestSourcesOfTwoGroups(t *testing.T) {
	t.Run("PROP-W5 sources of one name, and of kinds of one name in two groups, are read at the same time: "+
		"each copy has the body of its own source", testSourcesOfTwoGroups)
}

func testSourcesOfTwoGroups(t *testing.T) {
	s := newSources(slowAPI{}, copies.Rules{}, func(copyengine.Input) copyengine.Request { return nil })
	var wait sync.WaitGroup
	for i, gv := range []schema.GroupVersion{{Version: "v1"}, {Group: "serving.knative.dev", Version: "v1"}} {
		wait.Go(func() {
			time.Sleep(time.Duration(i) * 100 * time.Millisecond)
			slot := copies.Slot{Kind: schema.GroupKind{Group: gv.Group, Kind: "Service"}, Namespace: "acme", Name: "web"}
			body, err := s.bodyOf(t.Context(), slot, gv.WithResource("services"), "unknown")
			if err != nil {
				t.Error(err)
				return
			}
			text, err := body.JSON(slot.At("child"), "acme", copies.Hash{Mode: v1alpha1.ModeUpdate}, nil)
			if err != nil || !strings.Contains(string(text), `"apiVersion":"`+gv.String()+`"`) {
				t.Errorf("the copy of %s Service acme/web would be %s (%v)", gv, text, err)
			}
		})
	}
	wait.Wait()
}
