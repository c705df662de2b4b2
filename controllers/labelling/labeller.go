// Package labelling puts the label propagate on objects that another controller made, such as a Certificate's Secret.
// It does so if that controller's object asks for it (annotation propagate-generated). Package controllers/copies then
// copies them (docs/behaviour/propagation.md, 2.8). A source is an object that is propagated; a generator is an object
// that controls other objects by their ownerReferences, such as the Certificate.
//
// The way of one change: the watch of a kind brings the new metadata of a generator, or of a generated object
// (watch.go). The tables keep what matters of the metadata (tables.go), and the objects concerned are queued. A worker
// asks a pure planner, copies.Generated.PlanLabel, whether an object's label is to change, and applies that one label
// (label.go).
//
// Objects of RBAC kinds are never labelled: a user may annotate a generator without having the rights that the
// generated object grants. The operator takes a label off only if it has set that label, and only while the watch of
// the generators works. If a kind is no longer a generator by the configuration, labels and copies of what it generated
// stay, and users may change the labels. A label that a user takes off is restored within the limit of DriftLoop.
package labelling

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/requeue"
	"github.com/warren-tenancy/warren/internal/view"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// Settings are what the configuration says about generated objects.
type Settings struct {
	// Kinds are the kinds whose objects may be labelled, Generators the kinds whose annotation asks for the label.
	Kinds, Generators []schema.GroupVersionKind // an empty version means the one that the server prefers
	// RetryMin and RetryMax bound the back-off of labels that the API server refuses.
	RetryMin, RetryMax time.Duration
}

// Timing holds time constants, so that tests can shrink them.
type Timing struct {
	// LoopWindow is how long an object is left without the label if another client removes the label again and again.
	LoopWindow time.Duration
	// Write bounds one request.
	Write time.Duration
}

// DefaultTiming is what production uses.
func DefaultTiming() Timing {
	return Timing{LoopWindow: 10 * time.Minute, Write: 30 * time.Second}
}

// Options are what a Labeller is made of.
type Options struct {
	Config *rest.Config
	View   *view.View
	Events record.EventRecorder
	Timing Timing
	// Informers follow the kinds. The manager starts them.
	Informers *watchset.Set
}

// Labeller labels generated objects, on the leader alone. A standby watches nothing for it.
type Labeller struct {
	Options
	client   metadata.Interface
	repairs  *copies.Repairs
	settings Settings
	tables   *tables
	slots    requeue.Source[copies.Slot]
	backoff  workqueue.TypedRateLimiter[copies.Slot]
}

// New returns a Labeller.
func New(o Options, s Settings) (*Labeller, error) {
	client, err := metadata.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making the client for labels: %w", err)
	}
	return &Labeller{
		Options: o, client: client, repairs: copies.NewRepairs(), settings: s, tables: newTables(s.Kinds, s.Generators),
		backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[copies.Slot](s.RetryMin, s.RetryMax),
	}, nil
}

// SetupWithManager runs the labeller with mgr. One worker is enough: generated objects are few and change seldom. With
// more, repairs would need a lock.
func (l *Labeller) SetupWithManager(mgr ctrl.Manager) error {
	l.View.Subscribe(func(c view.Change) { l.slots.Add(l.tables.slotsIn(c.Namespaces)...) })
	return builder.TypedControllerManagedBy[copies.Slot](mgr).Named("generated").
		WatchesRawSource(source.TypedFunc[copies.Slot](l.followKinds)).
		WithOptions(controller.TypedOptions[copies.Slot]{MaxConcurrentReconciles: 1, RateLimiter: l.backoff}).
		Complete(apianswer.Patiently(l))
}

// Notes returns sentences about kinds that can't be watched.
func (l *Labeller) Notes() []string { return l.tables.describeUnseen() }
