// Package guard watches the admission policies that confine the operator and its tenants. It refuses to start under an
// identity that the policies don't name (identity.go). It reports policies that are not in force (policies.go), and
// writes of the operator that a policy refused (refusals.go). It writes nothing but Events, and a missing policy stops
// nothing, because tenants must be able to work.
//
// The cage are the policies operator-cage-*: they refuse every write with the operator's token that the operator has no
// reason to make.
package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/manifests"
	"github.com/warren-tenancy/warren/internal/requeue"
)

// Timing holds the time constants, so that tests can shrink them.
type Timing struct {
	// Interval is the time between two looks at the policies.
	Interval time.Duration
	// Retry is the time until the next look after a look that failed.
	Retry time.Duration
}

// DefaultTiming is what production uses.
func DefaultTiming() Timing { return Timing{Interval: 10 * time.Minute, Retry: 10 * time.Second} }

// Guard compares our admission policies in the cluster with the shipped ones, at the start and then again and again. It
// runs on every replica, but only the leader sends Events. All exported fields are required.
type Guard struct {
	// Live reads policies and bindings, by name, from the API server.
	Live   client.Reader
	Mapper meta.RESTMapper
	// Kinds are the kinds that the configuration lets the operator write.
	Kinds []schema.GroupKind
	// Events sends Events about Deployment, which is the operator's own.
	Events     record.EventRecorder
	Deployment *corev1.ObjectReference
	Timing     Timing

	leads atomic.Bool
	// announced are the gaps that this replica has sent Events about. Only checkInForce uses it.
	announced map[string]string

	mu   sync.Mutex        // guards gaps
	gaps map[string]string // short name of a policy → why it is not fully in force
}

// Deployment returns a reference to the operator's Deployment in its namespace, where people look for Events. The
// reference is not checked: outside a cluster there is no such Deployment.
func Deployment(namespace string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: v1alpha1.OperatorAccount}
}

// SetupWithManager runs the guard with mgr, on every replica: each reports in its own metrics, logs and probe.
func (g *Guard) SetupWithManager(mgr ctrl.Manager) error {
	loop := &requeue.Loop{Name: "guard", Look: g.checkInForce, RetryMin: g.Timing.Retry, RetryMax: g.Timing.Retry, EveryReplica: true}
	elected := manager.RunnableFunc(func(context.Context) error {
		g.leads.Store(true)
		loop.Now() // to send the Events that this replica withheld while it was a standby
		return nil
	})
	return errors.Join(mgr.Add(elected), loop.SetupWithManager(mgr))
}

// Missing reports whether the last look that succeeded found that a policy is not fully in force, or that it can't be
// checked. The policy is named without `warren-`. Before the first look, Missing returns false.
func (g *Guard) Missing(policy string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.gaps[policy] != ""
}

// Notes returns one sentence for each policy that is not fully in force, for the text of a readiness probe.
func (g *Guard) Notes() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var notes []string
	for _, policy := range slices.Sorted(maps.Keys(g.gaps)) {
		notes = append(notes, describePolicy(policy, g.gaps[policy]))
	}
	return notes
}

func describePolicy(policy, why string) string {
	return fmt.Sprintf("policy %s%s is not fully in force, or can't be checked: %s", manifests.Prefix, policy, why)
}

// checkInForce compares the policies in the cluster with the shipped ones. It logs the gaps that were not there at the
// last look, and those that are there no longer.
func (g *Guard) checkInForce(ctx context.Context) (again time.Duration, err error) {
	seen, err := g.readPolicies(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the admission policies; their last known state still holds: %w", err)
	}
	now := map[string]string{}
	for _, p := range manifests.Shipped {
		gap.WithLabelValues(p.Name).Set(0)
		if why := seen.findGap(p); why != "" {
			gap.WithLabelValues(p.Name).Set(1)
			now[p.Name] = why
		}
	}
	g.mu.Lock()
	before := g.gaps
	g.gaps = now
	g.mu.Unlock()
	logGaps(before, now)
	if g.leads.Load() {
		g.announceGaps(now)
	}
	return g.Timing.Interval, nil
}

// logGaps logs every change from before to now.
func logGaps(before, now map[string]string) {
	log := ctrl.Log.WithName("guard")
	for _, p := range manifests.Shipped {
		switch was, is := before[p.Name], now[p.Name]; {
		case was == is:
		case is == "":
			log.Info("an admission policy is in force again", "policy", manifests.Prefix+p.Name)
		default:
			log.Error(errors.New(is), "an admission policy is not fully in force, or can't be checked", "policy", manifests.Prefix+p.Name)
		}
	}
}

// announceGaps sends an Event for each new gap.
func (g *Guard) announceGaps(now map[string]string) {
	for _, policy := range slices.Sorted(maps.Keys(now)) {
		if why := now[policy]; why != g.announced[policy] {
			g.Events.Event(g.Deployment, corev1.EventTypeWarning, string(v1alpha1.ReasonPolicyMissing), describePolicy(policy, why))
		}
	}
	g.announced = now
}

// readPolicies reads all shipped policies, their bindings, and the resource names of the configured kinds.
func (g *Guard) readPolicies(ctx context.Context) (*sight, error) {
	s := newSight()
	for _, p := range manifests.Shipped {
		if err := s.readPolicy(ctx, g.Live, p); err != nil {
			return nil, err
		}
	}
	for _, kind := range g.Kinds {
		mapping, err := g.Mapper.RESTMapping(kind)
		switch {
		case meta.IsNoMatchError(err): // the kind is not served (yet), so nobody can write it
		case err != nil:
			return nil, fmt.Errorf("finding the resource of %s: %w", kind, err)
		default:
			s.resources = append(s.resources, mapping.Resource.GroupResource())
		}
	}
	return s, nil
}
