package copies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	ctrl "sigs.k8s.io/controller-runtime"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copying"
)

// A page of the scrub holds at most so many objects, and bytes unless a single object is larger.
const (
	pageObjects = 100
	pageBytes   = 8 << 20
)

// scrub compares all copies with their sources, slowly, whenever a pass is due, until ctx is done. It finds drift that no metadata shows: a
// key that was taken away while nobody watched, or a change under the operator's own field manager.
func (r *Runner) scrub(ctx context.Context) {
	passes := copying.Passes{
		Pace: r.Scrub, Ready: func() bool { return r.Ready(nil) == nil }, Unprotected: r.Unprotected, Tick: r.settings.Timing.Tick,
	}
	passes.Run(ctx, func(ctx context.Context) {
		if err := r.compareAll(ctx); err != nil && ctx.Err() == nil {
			ctrl.Log.WithName("copies").Error(err, "comparing all copies; the next pass does it again")
		}
	})
}

func (r *Runner) compareAll(ctx context.Context) error {
	limiter := rate.NewLimiter(rate.Limit(r.Scrub.ObjectsPerSecond), pageObjects)
	var parts []copies.ScrubPart
	r.read(func(s *copies.State) { parts = s.FindScrubParts() })
	failed := map[schema.GroupKind]error{}
	for _, part := range parts {
		gk := part.Kind.GroupKind()
		if err := r.comparePart(ctx, part, limiter); err != nil && (part.Namespace == copies.Everywhere || !apianswer.IsRefusal(err)) {
			failed[gk] = errors.Join(failed[gk], fmt.Errorf("%s in %q: %w", gk, part.Namespace, err))
		}
	}
	for _, part := range parts {
		if gk := part.Kind.GroupKind(); failed[gk] == nil {
			scrubbed.WithLabelValues(gk.Group, gk.Kind).SetToCurrentTime()
		}
	}
	return errors.Join(slices.Collect(maps.Values(failed))...)
}

// comparePart compares the copies of a kind in a namespace, or in all.
func (r *Runner) comparePart(ctx context.Context, part copies.ScrubPart, limiter *rate.Limiter) error {
	limit, from := pageObjects, ""
	for {
		if err := limiter.WaitN(ctx, limit); err != nil {
			return err
		}
		data, err := r.readPage(ctx, part, limit, from)
		if next, expired := apianswer.Continuation(err); expired {
			from = next
			continue
		}
		if errors.Is(err, copying.ErrTooLarge) {
			limit = max(1, limit/2)
			continue
		}
		if err != nil {
			return err
		}
		page := struct {
			Metadata metav1.ListMeta   `json:"metadata"`
			Items    []json.RawMessage `json:"items"`
		}{}
		if err := json.Unmarshal(data, &page); err != nil {
			return fmt.Errorf("reading a page of copies: %w", err)
		}
		for _, item := range page.Items {
			if err := r.compareCopy(ctx, part, item); err != nil {
				return err
			}
		}
		if from = page.Metadata.Continue; from == "" {
			return nil
		}
		limit = min(pageObjects, limit*2)
	}
}

func (r *Runner) readPage(ctx context.Context, part copies.ScrubPart, limit int, from string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, r.settings.Timing.Write)
	defer cancel()
	most := pageBytes
	if limit == 1 {
		most = 0
	}
	return r.writer.Page(ctx, part.Resource, part.Namespace, metav1.ListOptions{LabelSelector: v1alpha1.LabelInheritedFrom, Limit: int64(limit), Continue: from}, most)
}

// compareCopy applies a DriftFound for a copy that is not what its source says, if the plan sees nothing to do there.
func (r *Runner) compareCopy(ctx context.Context, part copies.ScrubPart, item []byte) error {
	object := map[string]any{}
	if err := utiljson.Unmarshal(item, &object); err != nil {
		return fmt.Errorf("reading a copy: %w", err)
	}
	object["apiVersion"], object["kind"] = part.Kind.GroupVersion().String(), part.Kind.Kind // lists leave them out
	u := unstructured.Unstructured{Object: object}
	slot := copies.Slot{Kind: part.Kind.GroupKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
	drift := copies.DriftFound{Slot: slot, UID: string(u.GetUID()), ResourceVersion: u.GetResourceVersion()}
	var known *copies.Copy
	r.read(func(s *copies.State) { known = s.FindUnchanged(slot, drift.UID, drift.ResourceVersion) })
	if known == nil {
		return nil
	}
	source := slot.At(known.From)
	wanted, err := r.sources.bodyOf(ctx, source, part.Resource, known.Hash.Content)
	if apianswer.IsRefusal(err) {
		return nil // the source is gone or may not be read
	}
	if err != nil {
		return err
	}
	found, err := copies.Render(source, object, r.settings.Rules)
	if err == nil && wanted.Content == known.Hash.Content && wanted.Differs(found, known.Foreign) { // else the source's event queues the slot
		r.apply(drift)
	}
	return err
}
