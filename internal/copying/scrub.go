package copying

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/pause"
)

// Scrub is how often all copies are read whole, and how fast.
type Scrub struct {
	Interval         time.Duration // 0 switches it off
	ObjectsPerSecond int
}

// Scrubber reads all copies whole, slowly, whenever a pass is due, and compares them. This finds drift that no metadata
// shows: a key that was taken away while nobody watched, or a change under the operator's own field manager.
type Scrubber struct {
	Scrub
	Name   string // for the log
	Writer *Writer
	// Label is the key of the label that all copies have. A pass reads the objects with that label.
	Label string
	// Ready reports whether everything is known that a comparison needs.
	Ready func() bool
	// Unprotected reports whether the ValidatingAdmissionPolicy that forbids all other users to change copies is
	// missing. While it is missing, a pass comes at once, and then at least every hour, unless Interval is 0.
	Unprotected func() bool
	// Tick is the time between two checks whether a pass is due, Timeout bounds one request.
	Tick, Timeout time.Duration
	// Parts returns what a pass is to read.
	Parts func() []copies.ScrubPart
	// Compare compares one copy.
	Compare func(ctx context.Context, slot copies.Slot, resource schema.GroupVersionResource, object map[string]any) error
	// Done is called after a pass, for each kind whose copies were all compared; nil if nobody wants to know.
	Done func(schema.GroupKind)
}

// A page of the scrub holds at most pageObjects objects, and at most pageBytes bytes unless a single object is larger.
const (
	pageObjects = 100
	pageBytes   = 8 << 20
)

// Run begins a pass whenever one is due, until ctx is done.
func (s *Scrubber) Run(ctx context.Context) {
	started, share := time.Now(), rand.Float64()
	var last time.Time
	for {
		if findPassTime(started, last, share, s.Interval, s.Unprotected()) <= time.Since(started) && s.Ready() {
			if err := s.compareAll(ctx); err != nil && ctx.Err() == nil {
				ctrl.Log.WithName(s.Name).Error(err, "comparing all copies failed; the next pass repeats it")
			}
			last = time.Now()
		}
		if pause.For(ctx, s.Tick) != nil {
			return
		}
	}
}

const never = time.Duration(1<<63 - 1)

// findPassTime returns when, counted from the start, the next pass begins. The first pass comes after a random share of
// the interval, so that operators that are started together don't read together. While no policy protects the copies
// (unprotected), a pass comes at once, and then at least every hour.
func findPassTime(started, last time.Time, share float64, interval time.Duration, unprotected bool) time.Duration {
	switch {
	case interval == 0:
		return never
	case unprotected && last.IsZero():
		return 0
	case unprotected:
		return last.Sub(started) + min(interval, time.Hour)
	// Operators that are started together must not read together.
	case last.IsZero():
		return time.Duration(share * float64(interval))
	}
	return last.Sub(started) + interval
}

func (s *Scrubber) compareAll(ctx context.Context) error {
	limiter := rate.NewLimiter(rate.Limit(s.ObjectsPerSecond), pageObjects)
	parts := s.Parts()
	failed := map[schema.GroupKind]error{}
	for _, part := range parts {
		gk := part.Kind.GroupKind()
		// Where kinds are watched by namespace, a namespace that the operator may not list is no failure of the pass.
		if err := s.comparePart(ctx, part, limiter); err != nil && (part.Namespace == copies.Everywhere || !apianswer.IsRefusal(err)) {
			failed[gk] = errors.Join(failed[gk], fmt.Errorf("%s in %q: %w", gk, part.Namespace, err))
		}
	}
	for _, part := range parts {
		if gk := part.Kind.GroupKind(); failed[gk] == nil && s.Done != nil {
			s.Done(gk)
		}
	}
	return errors.Join(slices.Collect(maps.Values(failed))...)
}

// comparePart compares the copies of a kind in a namespace, or in all.
func (s *Scrubber) comparePart(ctx context.Context, part copies.ScrubPart, limiter *rate.Limiter) error {
	limit, from := pageObjects, ""
	for {
		// Before the read, so that the limit protects the API server, too.
		if err := limiter.WaitN(ctx, limit); err != nil {
			return err
		}
		data, err := s.readPage(ctx, part, limit, from)
		if next, expired := apianswer.Continuation(err); expired {
			// etcd has compacted the version of this list: the token leads to the present objects after the last one
			// that was read.
			from = next
			continue
		}
		if errors.Is(err, ErrTooLarge) {
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
			if err := s.compareCopy(ctx, part, item); err != nil {
				return err
			}
		}
		if from = page.Metadata.Continue; from == "" {
			return nil
		}
		// The next objects may be small again.
		limit = min(pageObjects, limit*2)
	}
}

func (s *Scrubber) readPage(ctx context.Context, part copies.ScrubPart, limit int, from string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	most := pageBytes
	if limit == 1 {
		// A single object must be read whatever its size.
		most = 0
	}
	return s.Writer.Page(ctx, part.Resource, part.Namespace, metav1.ListOptions{LabelSelector: s.Label, Limit: int64(limit), Continue: from},
		most)
}

func (s *Scrubber) compareCopy(ctx context.Context, part copies.ScrubPart, item []byte) error {
	object := map[string]any{}
	if err := utiljson.Unmarshal(item, &object); err != nil {
		return fmt.Errorf("reading a copy: %w", err)
	}
	object["apiVersion"], object["kind"] = part.Kind.GroupVersion().String(), part.Kind.Kind // lists leave them out
	u := unstructured.Unstructured{Object: object}
	return s.Compare(ctx, copies.Slot{Kind: part.Kind.GroupKind(), Namespace: u.GetNamespace(), Name: u.GetName()}, part.Resource, object)
}
