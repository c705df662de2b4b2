// Package copies runs the copying engine: it feeds internal/copyengine.State with what happens, and carries out what
// the State decides. All decisions are the State's.
//
// The way of a changed Secret: pkg/watchset shows its new metadata to a copying.Sink, and the copying.Runner applies
// them to the State under the one lock. The State answers with a key, which waits in the queue (internal/fairqueue). A
// worker takes the key and applies a Started; the State answers with a request to read the source (requests.go). The
// worker applies the answer, and the State queues the slots below the source. For each of them a worker gets a request
// to write a copy, sends it (requests.go), and applies the answer.
//
// The way of a move: the view reports a change of the forest, which the Runner applies as a ForestChanged, and the
// State queues the namespaces whose copies may differ. The copies that do not belong there any more are deleted, each
// after a check that the namespaces above are what the State believes (removalchecks.go); the State holds back all
// writes that must wait for that.
package copies

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/fairqueue"
	"github.com/warren-tenancy/warren/internal/view"
)

// Options are what New needs to make a Runner.
type Options struct {
	copying.Options
	// Troubled is called with the namespaces that have something new to report. It must not block, nor call the Runner;
	// it may be nil. The operator sets hierarchy.Reporter.Again.
	Troubled func(namespaces ...string)
}

// Runner runs a State: it watches on every replica and writes on the leader.
type Runner struct {
	*runner
	settings copyengine.Settings
	requests *Requests
	watches  *watches
	troubled func(namespaces ...string)
}

type runner = copying.Runner[*copyengine.State, copyengine.Input, copyengine.Request, copyengine.Key]

// New returns a Runner that reads and writes with o.Config.
func New(o Options, settings copyengine.Settings) (*Runner, error) {
	w, err := copying.NewWriter(o.Config, o.Refused)
	if err != nil {
		return nil, fmt.Errorf("making the client for copies: %w", err)
	}
	return newRunner(o, settings, w, w), nil
}

// newRunner returns a Runner that sends requests to api, and reads pages for the scrub with pages.
func newRunner(o Options, settings copyengine.Settings, api copying.API, pages *copying.Writer) *Runner {
	r := &Runner{settings: settings, troubled: o.Troubled}
	if r.troubled == nil {
		r.troubled = func(...string) {}
	}
	r.runner = copying.NewRunner(o.Options, copying.Work[copyengine.Input, copyengine.Request, copyengine.Key]{
		Name: "copies", Elected: copyengine.Elected{},
		Started: func(key copyengine.Key) copyengine.Input { return copyengine.Started{Key: key} },
		ForestChanged: func(c view.Change) copyengine.Input {
			return copyengine.ForestChanged{Old: c.Old, New: c.New, Namespaces: c.Namespaces}
		},
		PlaceKey: r.attributesOf, CarryOut: r.carryOut, Timeout: settings.Timing.Write, Perform: r.performOutput,
		Watch: func(ctx context.Context) error { return r.watches.runWatches(ctx, settings.Kinds) },
		Lead:  r.runTicks, Ready: r.Ready, Gauges: newGauges(r),
		Scrubber: copying.Scrubber{
			Writer: pages, Label: v1alpha1.LabelInheritedFrom, Tick: settings.Timing.Tick, Timeout: settings.Timing.Write, Compare: r.compareCopy,
			Done: func(gk schema.GroupKind) { scrubbed.WithLabelValues(gk.Group, gk.Kind).SetToCurrentTime() },
		},
	}, copyengine.NewState(o.View.Snapshot(), settings))
	r.requests = NewRequests(api, o.View, settings.Rules, r.Read, r.Apply)
	r.watches = newWatches(o.Informers, func(input copyengine.Input) { r.Apply(input) })
	return r
}

func (r *Runner) attributesOf(key copyengine.Key) (of fairqueue.Attributes) {
	r.Read(func(s *copyengine.State) { of = s.TurnOf(key) })
	return of
}

func (r *Runner) performOutput(output copies.Output) {
	switch one := output.(type) {
	case copyengine.Report:
		r.troubled(one.Namespaces...)
	case copyengine.Follow:
		r.watches.followed.Replace(one.Namespaces)
	case copyengine.FollowSoon:
		r.watches.followSoon()
	default:
		recordMetrics(one)
	}
}

// carryOut carries out one request. A failed write, or a failed check before it, is in vain, except for ErrBehind from
// the check.
func (r *Runner) carryOut(ctx context.Context, request copyengine.Request) (answer copyengine.Input, inVain bool) {
	answer = r.requests.CarryOut(ctx, request)
	switch one := answer.(type) {
	case copyengine.CopyWritten:
		inVain = one.Err != nil
	case copyengine.RemovalChecked:
		inVain = one.Err != nil && !errors.Is(one.Err, copies.ErrBehind)
	}
	return answer, inVain
}

// runTicks applies a Ticked every Timing.Tick until ctx is done.
func (r *Runner) runTicks(ctx context.Context) {
	for ctx.Err() == nil {
		// Asked first: a queue that is empty before the view is synced proves nothing.
		synced := r.View.Synced()
		r.Apply(copyengine.Ticked{Synced: synced, Idle: synced && r.IsIdle()})
		select {
		case <-ctx.Done():
		case <-time.After(r.settings.Timing.Tick):
		}
	}
}

// Ready is a readiness check: the State knows all namespaces, sources and copies that existed at its start. A kind that
// is not served, that may not be listed, or that is degraded, does not count.
func (r *Runner) Ready(*http.Request) (err error) {
	if !r.View.Synced() {
		return fmt.Errorf("namespaces are not synced yet")
	}
	r.Read(func(s *copyengine.State) { err = s.CheckSynced() })
	return err
}

// AwaitsRails reports whether new rights in namespace must wait for rails there. In a root, rails are the copies from
// its templates. The answer is true, too, for the moment until the State has taken in the latest snapshot of the
// forest.
func (r *Runner) AwaitsRails(namespace string) bool {
	return r.isBehind() || slices.Contains(r.ApplyAll(copyengine.RightsAsked{Namespace: namespace}), copies.Output(copyengine.RightsWait{}))
}

// isBehind reports whether the State has not taken in the latest snapshot of the forest yet.
func (r *Runner) isBehind() (behind bool) {
	r.Read(func(s *copyengine.State) { behind = s.Forest() != r.View.Snapshot() })
	return behind
}

// Unobserved returns a sentence for each kind of which the operator can see nothing anywhere, so that the state of the
// copies of that kind is unknown.
func (r *Runner) Unobserved() (all []string) {
	r.Read(func(s *copyengine.State) { all = s.DescribeBlind() })
	return all
}

// UnobservedIn returns a sentence for each kind whose copies in namespace cannot be judged now, because the operator
// cannot see the copies there, or the sources in a namespace above.
func (r *Runner) UnobservedIn(namespace string) (all []string) {
	r.Read(func(s *copyengine.State) { all = append(s.DescribeBlind(), s.DescribeUnseen(namespace)...) })
	return all
}

// MayNotObserve reports whether the operator lacks a right, or room for more watches, to see the copies in namespace or
// the sources of a namespace above. Kinds that are watched in the whole cluster do not count.
func (r *Runner) MayNotObserve(namespace string) (lacks bool) {
	r.Read(func(s *copyengine.State) { lacks = s.LacksRight(namespace) })
	return lacks
}

// HoldsCopies reports whether namespace holds copies that the operator deletes when namespace leaves the forest, or may
// hold such copies without the operator seeing them. The answer is true, too, for the moment until the State has taken
// in the latest snapshot of the forest.
func (r *Runner) HoldsCopies(namespace string) (holds bool) {
	if r.isBehind() {
		return true
	}
	r.Read(func(s *copyengine.State) { holds = s.HoldsCopies(namespace) })
	return holds
}

// Known reports whether everything in namespace, below it and above it was looked at since this replica leads. Before
// that, Troubles may lack some.
func (r *Runner) Known(namespace string) (known bool) {
	r.Read(func(s *copyengine.State) { known = s.IsKnown(namespace) })
	return known
}

// Troubles returns what keeps copies in these namespaces from being what they should be, in alphabetical order.
func (r *Runner) Troubles(namespaces iter.Seq[string]) (all []copies.Trouble) {
	r.Read(func(s *copyengine.State) { all = s.Troubles(namespaces) })
	return all
}
