// Package distribution keeps a copy of a ResourceDistribution's object in every namespace that the ResourceDistribution
// targets. It feeds internal/distribute.State with what happens, and carries out what the State decides. All decisions
// are the State's.
//
// The way of a changed ResourceDistribution: pkg/watchset shows it to a copying.Sink, and the copying.Runner applies it
// to the State under the one lock. The State answers with a key, which waits in the queue (internal/fairqueue). A
// worker takes the key and applies a Started: a review plans all targets together. It may ask for a list of obstacles,
// then for a write of the status, which must record what a restarted operator has to know. Then it queues the targets.
// For each of them a worker gets a request to write one copy, sends it (requests.go), and applies the answer.
package distribution

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/metadata"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/fairqueue"
	"github.com/warren-tenancy/warren/internal/view"
)

// Runner runs a State: it watches on every replica and writes on the leader.
type Runner struct {
	*runner
	requests *Requests
	watches  *watches
}

type runner = copying.Runner[*distribute.State, distribute.Input, distribute.Request, distribute.Key]

// New returns a Runner that reads and writes with o.Config.
func New(o copying.Options, of distribute.Options) (*Runner, error) {
	writer, err := copying.NewWriter(o.Config, o.Refused)
	if err != nil {
		return nil, fmt.Errorf("making the client for copies: %w", err)
	}
	lister, err := metadata.NewForConfig(copying.OverHTTP1(o.Config))
	if err != nil {
		return nil, fmt.Errorf("making the client that lists conflicting objects: %w", err)
	}
	r := &Runner{requests: &Requests{API: writer, Timing: of.Timing, List: listWith(lister)}}
	r.runner = copying.NewRunner(o, copying.Work[distribute.Input, distribute.Request, distribute.Key]{
		Name: "distribution", Elected: distribute.Elected{},
		Started: func(key distribute.Key) distribute.Input { return distribute.Started{Key: key} },
		ForestChanged: func(c view.Change) distribute.Input {
			return distribute.ForestChanged{Old: c.Old, New: c.New, Namespaces: c.Namespaces}
		},
		PlaceKey: attributesOf,
		CarryOut: func(ctx context.Context, request distribute.Request) (answer distribute.Input, inVain bool) {
			return r.requests.CarryOut(ctx, request), false // only the work of tenants rests after a failure
		},
		Perform: r.performOutput,
		Watch:   func(ctx context.Context) error { return r.watches.runWatches(ctx) },
		Ready:   r.Ready, Gauges: gauges{r},
		Scrubber: copying.Scrubber{
			Writer: writer, Label: v1alpha1.LabelDistributedBy, Tick: of.Timing.Tick, Timeout: of.Timing.Write, Compare: r.compareCopy,
		},
	}, distribute.NewState(o.View.Snapshot(), of))
	r.watches = newWatches(r, of.Kinds)
	return r, nil
}

// attributesOf returns where a key waits: reviews come first, then writes, in turns by distribution. There are no turns
// by tenant, because distributions belong to the administrators of the cluster.
func attributesOf(k distribute.Key) fairqueue.Attributes {
	if k.Namespace == "" {
		return fairqueue.Attributes{}
	}
	return fairqueue.Attributes{Class: 1, Lane: k.Distribution}
}

func (r *Runner) performOutput(output copies.Output) {
	switch one := output.(type) {
	case distribute.FollowObstacles:
		r.watches.followSoon()
	case distribute.RolloutEnded:
		rolloutSeconds.Observe(time.Since(one.Since).Seconds())
	}
}

// Ready is a readiness check: where the CRD is served, all ResourceDistributions and their copies have been listed. It
// waits for a list no longer than DegradedAfter.
func (r *Runner) Ready(*http.Request) (err error) {
	r.Read(func(s *distribute.State) { err = s.CheckSynced(time.Now()) })
	return err
}
