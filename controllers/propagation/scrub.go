package propagation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	ctrl "sigs.k8s.io/controller-runtime"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// A page of the scrub holds at most so many objects, and bytes unless a single object is larger.
const (
	pageObjects = 100
	pageBytes   = 8 << 20
)

// scrub compares all copies with their sources, slowly, on the leader. It finds drift that no metadata shows: a key that was taken away while
// nobody watched, or a change under the operator's own field manager.
type scrub struct {
	settings *Settings
	timing   Timing
	facts    facts
	tables   *tables
	kinds    *kinds
	queue    *queue
	sources  *sources
	writer   *copying.Writer
	repairs  *repairs
	// unprotected says whether the ValidatingAdmissionPolicy is missing that forbids everybody else to change copies.
	unprotected func() bool
}

// run starts a pass whenever one is due and ready says that the tables are complete, until ctx is done.
func (s *scrub) run(ctx context.Context, ready func() bool) {
	passes := copying.Passes{Pace: s.settings.Scrub, Ready: ready, Unprotected: s.unprotected, Tick: s.timing.ScrubTick}
	passes.Run(ctx, func(ctx context.Context) {
		if err := s.compareAll(ctx); err != nil && ctx.Err() == nil {
			ctrl.Log.WithName("propagation").Error(err, "comparing all copies; the next pass does it again")
		}
	})
}

func (s *scrub) compareAll(ctx context.Context) error {
	limiter := rate.NewLimiter(rate.Limit(s.settings.Scrub.ObjectsPerSecond), pageObjects)
	var failed []error
	for _, run := range s.kinds.list() {
		if run.kind.Mode == propagate.Remove || s.kinds.stateOf(run.kind.GroupKind()) != kindActive {
			continue
		}
		if err := s.compareKind(ctx, run, limiter); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", run.kind.GroupKind(), err))
			continue
		}
		scrubbed.WithLabelValues(run.kind.Group, run.kind.Kind).SetToCurrentTime()
	}
	return errors.Join(failed...)
}

// compareKind compares the copies of a kind: all together where the whole cluster is watched, else one namespace after the other.
func (s *scrub) compareKind(ctx context.Context, run *kindRun, limiter *rate.Limiter) error {
	mapping := s.kinds.mappingOf(run.kind.GroupKind())
	if !run.kind.isNarrow() || s.kinds.isWide(run) {
		return s.compareCopies(ctx, mapping, "", limiter)
	}
	var failed []error
	for namespace := range s.kinds.followed.all {
		if err := s.compareCopies(ctx, mapping, namespace, limiter); err != nil && !apianswer.IsRefusal(err) {
			failed = append(failed, fmt.Errorf("namespace %s: %w", namespace, err))
		}
	}
	return errors.Join(failed...)
}

// compareCopies compares the copies of a kind in a namespace, or in all if it is "".
func (s *scrub) compareCopies(ctx context.Context, mapping *meta.RESTMapping, namespace string, limiter *rate.Limiter) error {
	limit, from := pageObjects, ""
	for {
		if err := limiter.WaitN(ctx, limit); err != nil {
			return err
		}
		data, err := s.readPage(ctx, mapping.Resource, namespace, limit, from)
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
			if err := s.compareCopy(ctx, mapping.GroupVersionKind, item); err != nil {
				return err
			}
		}
		if from = page.Metadata.Continue; from == "" {
			return nil
		}
		limit = min(pageObjects, limit*2)
	}
}

func (s *scrub) readPage(ctx context.Context, resource schema.GroupVersionResource, namespace string, limit int, from string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timing.Write)
	defer cancel()
	most := pageBytes
	if limit == 1 {
		most = 0
	}
	return s.writer.Page(ctx, resource, namespace, metav1.ListOptions{LabelSelector: v1alpha1.LabelInheritedFrom, Limit: int64(limit), Continue: from}, most)
}

// compareCopy queues the slot of a copy that is not what its source says, if the plan sees nothing to do there.
func (s *scrub) compareCopy(ctx context.Context, kind schema.GroupVersionKind, item []byte) error {
	object := map[string]any{}
	if err := utiljson.Unmarshal(item, &object); err != nil {
		return fmt.Errorf("reading a copy: %w", err)
	}
	object["apiVersion"], object["kind"] = kind.GroupVersion().String(), kind.Kind // lists leave them out
	u := unstructured.Unstructured{Object: object}
	slot := propagate.Slot{Kind: kind.GroupKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
	uid, resourceVersion := string(u.GetUID()), u.GetResourceVersion()
	c := s.facts.copyToCompare(slot, uid, resourceVersion)
	if c == nil {
		return nil
	}
	source := slot.At(c.From)
	wanted, err := s.sources.bodyOf(ctx, source, c.Hash.Content)
	if err != nil || wanted.Content != c.Hash.Content {
		return ignoreRefused(err) // the source has changed: its event queues the slot
	}
	rules := s.facts.rules()
	found, err := propagate.Render(source, object, rules)
	if err != nil {
		return err
	}
	if wanted.Differs(found, c.Foreign) && s.tables.markDrifted(slot, uid, resourceVersion) {
		s.repairs.noteFound(slot, foundByScrub)
		s.queue.Add(slotKey(slot))
	}
	return nil
}

// ignoreRefused returns nil for an error that only says that the source is gone or may not be read; otherwise err.
func ignoreRefused(err error) error {
	if apianswer.IsRefusal(err) {
		return nil
	}
	return err
}
