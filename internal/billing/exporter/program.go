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
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/apiserver"
	"github.com/warren-tenancy/warren/internal/billing/programs"
	"github.com/warren-tenancy/warren/internal/forest"
)

// program holds the loops, and the database and the outbox, which must be closed at the end.
type program struct {
	db     *sql.DB
	outbox *billing.Outbox
	loops  []loop
	// elected is closed when this process becomes the leader.
	elected chan struct{}
}

func (p *program) close() {
	_ = p.outbox.Close()
	_ = p.db.Close()
}

// surroundings are what the loops share with one another and with nothing else.
type surroundings struct {
	api    *apiserver.Client
	events record.EventRecorder
	clock  clock.PassiveClock
	// election makes one of several exporters the leader.
	election *apiserver.Election
	// identity is the name of the host, namespace that of the exporter's Lease and Deployment.
	identity, version, namespace string
}

// assemble opens the outbox and the ledger, and makes the loops.
func assemble(ctx context.Context, c *config.OperatorConfiguration, s surroundings) (*program, error) {
	path := outboxPath(&c.Billing)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of %s: %w; mount a volume there that the exporter may write", path, err)
	}
	store, db, err := OpenStore(&c.Billing)
	if err != nil {
		return nil, err
	}
	outbox, err := billing.OpenOutbox(ctx, path, c.Billing.Outbox.MaxRows, s.clock)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	p := &program{db: db, outbox: outbox, elected: make(chan struct{})}
	register()
	p.addLoops(c, store, s)
	if c.Billing.Driver == config.DriverSQLite {
		p.loops = append(p.loops, &onlyOne{elected: p.elected, wait: aloneWithin, path: c.Billing.SQLite.Path, waiting: s.election.Waiting})
	}
	return p, nil
}

// addLoops adds the loops that every exporter has.
func (p *program) addLoops(c *config.OperatorConfiguration, store *billing.Store, s surroundings) {
	b := &c.Billing
	track := &tracker{
		clusterID: clusterID(b), api: s.api, outbox: p.outbox, queue: newQueue(s.clock.Now), interval: time.Second,
		rules:       forest.Rules{ProtectedName: func(name string) bool { return c.Protected(name, s.namespace) }},
		mostUnsaved: b.Outbox.MaxRows,
	}
	timeout := max(2*time.Minute, 2*b.BigQuery.StatementTimeout.Duration)
	keep := &keeper{
		store: store, outbox: p.outbox, tracker: track, clock: s.clock, events: s.events, manage: b.Schema == config.SchemaManage,
		flusher:    &billing.Flusher{Outbox: p.outbox, Ledger: store, Clock: s.clock, Batch: b.Batch.MaxRows, Timeout: timeout},
		self:       &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: s.namespace, Name: programs.LeaseName},
		run:        billing.Run{ID: string(uuid.NewUUID()), Exporter: s.identity, Version: s.version, StartedAt: s.clock.Now()},
		flushEvery: b.FlushInterval.Duration, compareEvery: b.ResyncInterval.Duration, watermarkEvery: store.WatermarkInterval(),
		timeout: timeout,
	}
	pace := min(b.FlushInterval.Duration, time.Minute)
	report := &reporter{apply: s.api.ApplyTenantStatus, outbox: p.outbox, keeper: keep, tenants: track.tenants, clock: s.clock, events: s.events, pace: pace,
		patience: 2*b.FlushInterval.Duration + 10*time.Second}
	p.loops = append(p.loops, track, keep, report, newMemoryKeeper())
}

// aloneWithin is how long an exporter with driver sqlite waits to become the leader. The Lease of a dead predecessor expires earlier.
const aloneWithin = 45 * time.Second

// onlyOne ends an exporter with driver sqlite that doesn't become the leader in time: two replicas would have two files, each with
// a part of the ledger.
type onlyOne struct {
	elected <-chan struct{}
	wait    time.Duration
	path    string
	// waiting is Election.Waiting: why this process doesn't lead.
	waiting func() error
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
		if err := o.waiting(); err != nil && !errors.Is(err, apiserver.ErrHeld) {
			return fmt.Errorf("the exporter can't take Lease %s: %w; give its account the rights of component billing-exporter, and see that the API server can be reached", programs.LeaseName, err)
		}
		return fmt.Errorf("billing.driver sqlite needs one replica: another exporter holds Lease %s and writes its own %s; scale the Deployment to 1", programs.LeaseName, o.path)
	}
	return nil
}
