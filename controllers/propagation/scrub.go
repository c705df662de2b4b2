package propagation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	ctrl "sigs.k8s.io/controller-runtime"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// A page of the scrub holds at most so many objects, and bytes unless a single object is larger.
const (
	pageObjects = 100
	pageBytes   = 8 << 20
)

// Scrub is how often all copies are read whole, and how fast.
type Scrub struct {
	Interval         time.Duration // 0 switches it off
	ObjectsPerSecond int
}

// scrub finds, on the leader, what no metadata shows: a key that was taken away while nobody watched, or a change under
// our own manager's name.
func (e *Engine) scrub(ctx context.Context) {
	started, share := time.Now(), rand.Float64()
	var last time.Time
	for {
		e.mu.Lock()
		s := e.settings.Scrub
		e.mu.Unlock()
		if due(started, last, share, s.Interval, e.unprotected()) <= time.Since(started) && e.Ready(nil) == nil {
			if err := e.scrubAll(ctx, s.ObjectsPerSecond); err != nil && ctx.Err() == nil {
				ctrl.Log.WithName("propagation").Error(err, "comparing all copies; the next pass does it again")
			}
			last = time.Now()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(e.Timing.ScrubTick):
		}
	}
}

// unprotected says whether the policy that keeps everybody off the copies is missing.
func (e *Engine) unprotected() bool { return e.Unprotected != nil && e.Unprotected() }

const never = time.Duration(1<<63 - 1)

// due is when, counted from the start, the next pass begins. The first comes after a random share of the interval, so
// that operators that are started together don't read together. While nothing protects the copies it comes at once, and
// then every hour.
func due(started, last time.Time, share float64, interval time.Duration, unprotected bool) time.Duration {
	switch {
	case interval == 0:
		return never
	case unprotected && last.IsZero():
		return 0
	case unprotected:
		return last.Sub(started) + min(interval, time.Hour)
	case last.IsZero():
		return time.Duration(share * float64(interval))
	}
	return last.Sub(started) + interval
}

func (e *Engine) scrubAll(ctx context.Context, perSecond int) error {
	limiter := rate.NewLimiter(rate.Limit(perSecond), pageObjects)
	e.mu.Lock()
	var runs []*kindRun
	for _, run := range e.kinds {
		if run.state == kindActive && run.kind.Mode != propagate.Remove {
			runs = append(runs, run)
		}
	}
	e.mu.Unlock()
	var failed []error
	for _, run := range runs {
		if err := e.scrubKind(ctx, run, limiter); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", run.kind.GroupKind(), err))
			continue
		}
		scrubbed.WithLabelValues(run.kind.Group, run.kind.Kind).SetToCurrentTime()
	}
	return errors.Join(failed...)
}

func (e *Engine) scrubKind(ctx context.Context, run *kindRun, limiter *rate.Limiter) error {
	limit, from := pageObjects, ""
	for {
		if err := limiter.WaitN(ctx, limit); err != nil {
			return err
		}
		data, err := e.page(ctx, run.mapping.Resource, limit, from)
		if expired, ok := continuation(err); ok {
			from = expired
			continue
		}
		if errors.Is(err, errTooLarge) {
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
			if err := e.compare(ctx, run.mapping.GroupVersionKind, item); err != nil {
				return err
			}
		}
		if from = page.Metadata.Continue; from == "" {
			return nil
		}
		limit = min(pageObjects, limit*2)
	}
}

func (e *Engine) page(ctx context.Context, resource schema.GroupVersionResource, limit int, from string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, e.Timing.Write)
	defer cancel()
	most := pageBytes
	if limit == 1 {
		most = 0
	}
	return e.writer.page(ctx, resource, metav1.ListOptions{LabelSelector: v1alpha1.LabelInheritedFrom, Limit: int64(limit), Continue: from}, most)
}

// continuation is where to go on when a page came so late that the list's own moment has been compacted away.
func continuation(err error) (string, bool) {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return "", false
	}
	from := status.Status().Continue
	return from, from != ""
}

// compare puts a copy right that is not what its source says, where the plan sees nothing to do.
func (e *Engine) compare(ctx context.Context, kind schema.GroupVersionKind, item []byte) error {
	object := map[string]any{}
	if err := utiljson.Unmarshal(item, &object); err != nil {
		return fmt.Errorf("reading a copy: %w", err)
	}
	object["apiVersion"], object["kind"] = kind.GroupVersion().String(), kind.Kind // lists leave them out
	u := unstructured.Unstructured{Object: object}
	slot := propagate.Slot{Kind: kind.GroupKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
	uid, resourceVersion := string(u.GetUID()), u.GetResourceVersion()
	settled := func() *propagate.Copy { // what was read, if nothing has happened to it since
		c := e.world.Copy(slot)
		if c == nil || c.UID != uid || c.ResourceVersion != resourceVersion || !c.Ours || c.Hash.Mode != v1alpha1.ModeUpdate {
			return nil
		}
		if e.world.Source(slot.At(c.From)) == nil || e.world.Plan(slot).Verb != propagate.Nothing {
			return nil
		}
		return c
	}
	e.mu.Lock()
	c, rules := settled(), e.settings.Rules
	if c == nil {
		e.mu.Unlock()
		return nil
	}
	source, content, foreign := slot.At(c.From), c.Hash.Content, c.Foreign
	e.mu.Unlock()

	wanted, err := e.bodyOf(ctx, source, content)
	if err != nil || wanted.Content != content {
		return ignoreRefused(err) // the source has moved on: its event tells
	}
	found, err := propagate.Render(source, object, rules)
	if err != nil {
		return err
	}
	if !differs(wanted.Body, found, foreign) {
		return nil
	}
	e.mu.Lock()
	if c = settled(); c != nil {
		c.Drifted = true
		e.world.PutCopy(slot, c)
		e.found[slot] = foundByScrub
	}
	e.mu.Unlock()
	e.enqueue(slotKey(slot))
	return nil
}

// differs says whether a copy was changed. What it holds beyond its source, and is nobody's, was added by mutating
// admission, and would be added again.
func differs(source, found *propagate.Body, foreign bool) bool {
	return found.Content != source.Content && (foreign || !source.Within(found))
}

// ignoreRefused leaves out what only says that the source is gone or may not be read.
func ignoreRefused(err error) error {
	if refused(err) {
		return nil
	}
	return err
}
