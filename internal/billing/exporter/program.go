package exporter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/programs"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/leader"
	"github.com/warren-tenancy/warren/internal/memory"
)

// openLedger opens the ledger, and makes the folder of SQLite's file.
func openLedger(c *config.Billing) (*billing.Store, *sql.DB, error) {
	if c.Driver == config.DriverSQLite {
		if err := os.MkdirAll(filepath.Dir(c.SQLite.Path), 0o700); err != nil {
			return nil, nil, fmt.Errorf("making the folder of billing.sqlite.path %s: %w; mount a volume there that the exporter may write",
				c.SQLite.Path, err)
		}
	}
	return OpenStore(c)
}

// exporter holds what the loops are made of.
type exporter struct {
	ledger *billing.Store
	mgr    ctrl.Manager
	lock   *leader.Lock
	clock  clock.PassiveClock
	config *config.OperatorConfiguration
	// host is the name of the Pod, and namespace is the namespace of the exporter's Lease and Deployment.
	host, namespace, version string
}

// addLoops makes the loops and adds them to the manager. ctx is done when the process is asked to end.
func (e *exporter) addLoops(ctx context.Context) error {
	api, err := client.NewWithWatch(e.mgr.GetConfig(), client.Options{HTTPClient: e.mgr.GetHTTPClient(), Scheme: e.mgr.GetScheme(),
		Mapper: e.mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("making the exporter's client: %w", err)
	}
	b := &e.config.Billing
	events :=
		e.mgr.GetEventRecorderFor(fieldOwner) //nolint:staticcheck // Events are core/v1, of a component that policy warren-billing-exporter names
	rules := forest.Rules{ProtectedName: func(name string) bool { return e.config.Protected(name, e.namespace) }}
	track := newTracker(clusterID(b), rules, api, e.clock.Now)
	keep := &keeper{
		store: e.ledger, tracker: track, clock: e.clock, events: events,
		self:       &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: e.namespace, Name: programs.LeaseName},
		run:        billing.Run{ID: string(uuid.NewUUID()), Exporter: e.host, Version: e.version, StartedAt: e.clock.Now()},
		flushEvery: b.FlushInterval.Duration, compareEvery: b.ResyncInterval.Duration, watermarkEvery: e.ledger.WatermarkInterval(),
		timeout: max(2*time.Minute, 2*b.BigQuery.StatementTimeout.Duration), askedToEnd: func() bool { return ctx.Err() != nil },
	}
	report := &reporter{
		status: api.Status(), keeper: keep, clock: e.clock, events: events,
		pace: min(b.FlushInterval.Duration, time.Minute), patience: 2*b.FlushInterval.Duration + 10*time.Second,
	}
	loops := []manager.Runnable{track, keep, report, memory.Keeper{Interval: 10 * time.Second, MinFreed: 4 << 20,
		GarbagePercent: func() int { return garbagePercent }}}
	if b.Driver == config.DriverSQLite {
		loops = append(loops, &onlyOne{elected: e.mgr.Elected(), wait: aloneWithin, path: b.SQLite.Path, failure: e.lock.Failure})
	}
	for _, loop := range loops {
		err = errors.Join(err, e.mgr.Add(loop))
	}
	return err
}

// garbagePercent is how much the heap may grow before a collection, in percent of the live heap. It is below Go's
// default of 100 because the exporter has CPU time to spare and shares its node's memory with tenants.
const garbagePercent = 25

// aloneWithin is how long an exporter with driver sqlite waits to become the leader. The Lease of a dead predecessor
// expires earlier.
const aloneWithin = 45 * time.Second

// onlyOne ends an exporter with driver sqlite that doesn't become the leader in time: two replicas would have two
// files, each with a part of the ledger.
type onlyOne struct {
	elected <-chan struct{}
	wait    time.Duration
	path    string
	// failure is leader.Lock.Failure: it returns why the Lease can't be taken; nil if another process holds the Lease.
	failure func() error
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (o *onlyOne) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (o *onlyOne) Start(ctx context.Context) error {
	timer := time.NewTimer(o.wait)
	defer timer.Stop()
	select {
	case <-o.elected:
	case <-ctx.Done():
	case <-timer.C:
		if err := o.failure(); err != nil {
			return fmt.Errorf("the exporter can't take Lease %s: %w; give its account the rights of component billing-exporter, and see that the "+
				"API server can be reached", programs.LeaseName, err)
		}
		return fmt.Errorf("billing.driver sqlite needs one replica: another exporter holds Lease %s and writes its own %s; scale the "+
			"Deployment to 1", programs.LeaseName, o.path)
	}
	return nil
}
