package copies

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
)

// compareCopy applies a DriftFound for a copy in mode update that is not what its source says, if the plan sees nothing
// to do there.
func (r *Runner) compareCopy(ctx context.Context, slot copies.Slot, resource schema.GroupVersionResource, object map[string]any) error {
	u := unstructured.Unstructured{Object: object}
	drift := copyengine.DriftFound{Slot: slot, UID: string(u.GetUID()), ResourceVersion: u.GetResourceVersion()}
	var known *copies.Copy
	r.Read(func(s *copyengine.State) { known = s.FindUnchanged(slot, drift.UID, drift.ResourceVersion) })
	if known == nil {
		return nil
	}
	source := slot.At(known.From)
	wanted, err := r.requests.sources.bodyOf(ctx, source, resource, known.Hash.Content)
	if apianswer.IsRefusal(err) {
		return nil // the source is gone or may not be read
	}
	if err != nil {
		return err
	}
	found, err := copies.Render(source, object, r.settings.Rules)
	if err == nil && wanted.Content == known.Hash.Content && wanted.Differs(found, known.Foreign) { // otherwise the source's event queues it
		r.Apply(drift)
	}
	return err
}
