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

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/programs"
	"github.com/warren-tenancy/warren/internal/forest"
)

// program holds the database and the outbox, which must be closed at the end.
type program struct {
	db     *sql.DB
	outbox *billing.Outbox
}

func (p *program) close() {
	_ = p.outbox.Close()
	_ = p.db.Close()
}

// assemble opens the outbox and the ledger, and adds the loops to mgr.
func assemble(ctx context.Context, mgr ctrl.Manager, c *config.OperatorConfiguration, now clock.PassiveClock, identity, version, namespace string) (*program, error) {
	path := outboxPath(&c.Billing)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of %s: %w; mount a volume there that the exporter may write", path, err)
	}
	store, db, err := OpenStore(&c.Billing)
	if err != nil {
		return nil, err
	}
	outbox, err := billing.OpenOutbox(ctx, path, c.Billing.Outbox.MaxRows, now)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	p := &program{db: db, outbox: outbox}
	register()
	track, keep, report := p.loops(mgr, c, store, now, identity, version, namespace)
	if err := errors.Join(mgr.Add(track), mgr.Add(keep), mgr.Add(report), mgr.Add(newMemoryKeeper())); err != nil {
		p.close()
		return nil, err
	}
	if c.Billing.Usage.Enabled {
		if err := p.measureHours(ctx, mgr, &c.Billing, keep); err != nil {
			p.close()
			return nil, err
		}
	}
	if c.Billing.Driver == config.DriverSQLite {
		if err := mgr.Add(&onlyOne{elected: mgr.Elected(), wait: aloneWithin, path: c.Billing.SQLite.Path}); err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

func (p *program) loops(mgr ctrl.Manager, c *config.OperatorConfiguration, store *billing.Store, now clock.PassiveClock, identity, version, namespace string) (*tracker, *keeper, *reporter) {
	b := &c.Billing
	events := mgr.GetEventRecorderFor("warren-billing-exporter") //nolint:staticcheck // Events are core/v1, as the operator's
	track := &tracker{
		clusterID: clusterID(b), config: mgr.GetConfig(), outbox: p.outbox, queue: newQueue(now.Now), interval: time.Second,
		rules:       forest.Rules{ProtectedName: func(name string) bool { return c.Protected(name, namespace) }},
		mostUnsaved: b.Outbox.MaxRows,
	}
	timeout := max(2*time.Minute, 2*b.BigQuery.StatementTimeout.Duration)
	keep := &keeper{
		store: store, outbox: p.outbox, tracker: track, clock: now, events: events, manage: b.Schema == config.SchemaManage,
		flusher:    &billing.Flusher{Outbox: p.outbox, Ledger: store, Clock: now, Batch: b.Batch.MaxRows, Timeout: timeout},
		self:       &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: programs.LeaseName},
		run:        billing.Run{ID: string(uuid.NewUUID()), Exporter: identity, Version: version, StartedAt: now.Now()},
		flushEvery: b.FlushInterval.Duration, compareEvery: b.ResyncInterval.Duration, watermarkEvery: store.WatermarkInterval(),
		timeout: timeout,
	}
	pace := min(b.FlushInterval.Duration, time.Minute)
	report := &reporter{client: mgr.GetClient(), outbox: p.outbox, keeper: keep, tenants: track.tenants, clock: now, events: events, pace: pace,
		patience: 2*b.FlushInterval.Duration + 10*time.Second}
	return track, keep, report
}

// aloneWithin is how long an exporter with driver sqlite waits to become the leader. The Lease of a dead predecessor expires earlier.
const aloneWithin = 45 * time.Second

// onlyOne ends an exporter with driver sqlite that doesn't become the leader in time: two replicas would have two files, each with
// a part of the ledger.
type onlyOne struct {
	elected <-chan struct{}
	wait    time.Duration
	path    string
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
		return fmt.Errorf("billing.driver sqlite needs one replica: another exporter holds Lease %s and writes its own %s; scale the Deployment to 1", programs.LeaseName, o.path)
	}
	return nil
}
