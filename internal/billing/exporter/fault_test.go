package exporter

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/forest"
)

// crowd is the number of the tenant's namespaces. Their rows need more pages than the file of a case with a full disk may have.
const crowd = 500

// broken is an exporter with a ledger in a file, and without an API server: the case fills the queue in place of the watches.
type broken struct {
	*keeper
	db    *sql.DB // of the ledger; with one connection, a PRAGMA applies to every statement
	file  string
	clock *clocktesting.FakePassiveClock
}

func exporterOver(t *testing.T, file, outboxFile string) *broken {
	t.Helper()
	db, err := billing.OpenSQLite(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	store, err := billing.NewStore(db, billing.SQLite, billing.Options{Table: "ledger", Cluster: "c", MaxRows: crowd, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC))
	outbox, err := billing.OpenOutbox(t.Context(), outboxFile, 10*crowd, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = outbox.Close() })
	track := &tracker{clusterID: "c", rules: forest.Rules{}, outbox: outbox, queue: newQueue(now.Now), mostUnsaved: 10 * crowd}
	track.queue.put(&tenantFacts{name: "pay", uid: "t1", generation: 1, since: now.Now(), costCenter: "4711"}, false)
	for i := range crowd {
		n := &forest.Namespace{Name: fmt.Sprintf("pay-%d", i), UID: fmt.Sprint("n", i), Labels: map[string]string{v1alpha1.LabelParent: "pay"}}
		if i == 0 {
			n.Name, n.Labels = "pay", map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}
		}
		track.queue.put(&namespaceFacts{Namespace: n, owner: "t1", made: now.Now()}, false)
	}
	track.begin()
	return &broken{db: db, file: file, clock: now, keeper: &keeper{store: store, outbox: outbox, tracker: track, clock: now, manage: true,
		timeout:      time.Minute,
		compareEvery: time.Hour, watermarkEvery: 15 * time.Minute, events: record.NewFakeRecorder(100), askedToEnd: func() bool { return true },
		flusher: &billing.Flusher{Outbox: outbox, Ledger: store, Clock: now, Batch: crowd, Timeout: time.Minute},
		run:     billing.Run{ID: "r", Exporter: "pod", StartedAt: now.Now()}}}
}

// condition returns the condition that the exporter would report to the tenant now; nil if it would report none.
func (x *broken) condition(t *testing.T) *metav1.Condition {
	t.Helper()
	r := &reporter{outbox: x.outbox, keeper: x.keeper, clock: x.clock}
	s, err := r.readSituation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, s.unsaved, s.problem = x.tracker.tenants()
	return s.condition("t1", time.Hour)
}

// tells returns the condition that the exporter would report to the tenant now, as "status/reason".
func (x *broken) tells(t *testing.T) string {
	t.Helper()
	c := x.condition(t)
	if c == nil {
		return "nothing"
	}
	return string(c.Status) + "/" + c.Reason
}

// compareTwice lets enough time pass for two comparisons. The second one finds no difference.
func (x *broken) compareTwice(t *testing.T) {
	t.Helper()
	for range 2 {
		x.clock.SetTime(x.clock.Now().Add(2 * time.Hour))
		x.keep(t.Context())
	}
}

// history returns all periods of the tenant.
func (x *broken) history(t *testing.T) []billing.Period {
	t.Helper()
	periods, err := x.store.History(t.Context(), "pay")
	if err != nil {
		t.Fatal(err)
	}
	return periods
}

// exec runs a statement on the ledger's own connection.
func (x *broken) exec(t *testing.T, statement string) {
	t.Helper()
	if _, err := x.db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// wantWhole fails unless the ledger has one open period for each namespace, and no row twice.
func (x *broken) wantWhole(t *testing.T) {
	t.Helper()
	var rows, open int
	if err := x.db.QueryRowContext(t.Context(), "SELECT (SELECT count(*) FROM ledger), (SELECT count(*) FROM ledger_periods WHERE valid_to "+
		"IS NULL)").Scan(&rows, &open); err != nil {
		t.Fatal(err)
	}
	if rows != crowd || open != crowd {
		t.Errorf("%d rows, %d open periods; wanted %d of each", rows, open, crowd)
	}
}

func TestFileFaults(t *testing.T) {
	for name, c := range map[string]struct {
		happens, passes func(t *testing.T, x *broken)
		tells           string
	}{
		"the disk is full": {
			func(t *testing.T, x *broken) { x.exec(t, "PRAGMA max_page_count = 1") },
			func(t *testing.T, x *broken) { x.exec(t, "PRAGMA max_page_count = 1000000") }, "False/WarehouseUnavailable"},
		"the file is read-only": {
			func(t *testing.T, x *broken) { x.exec(t, "PRAGMA query_only = 1") },
			func(t *testing.T, x *broken) { x.exec(t, "PRAGMA query_only = 0") }, "False/AccessDenied"},
		"another process holds the file": {
			func(t *testing.T, x *broken) {
				x.exec(t, "PRAGMA busy_timeout = 50")
				holdFile(t, x.file)
			},
			func(t *testing.T, x *broken) { releaseFile(t, x.file) }, "False/WarehouseUnavailable"},
	} {
		t.Run("FLT-F37 "+name, func(t *testing.T) {
			dir := t.TempDir()
			x := exporterOver(t, filepath.Join(dir, "billing.db"), filepath.Join(dir, "outbox.db"))
			if err := x.ensure(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.happens(t, x)
			x.keep(t.Context())
			if got := x.tells(t); got != c.tells {
				t.Errorf("the tenant is told %s, wanted %s", got, c.tells)
			}
			c.passes(t, x)
			x.compareTwice(t)
			if got := x.tells(t); got != "True/Exported" {
				t.Errorf("once it has passed the tenant is told %s", got)
			}
			x.wantWhole(t)
		})
	}
}

func TestCutOffFile(t *testing.T) {
	t.Run("FLT-F37 the file is cut off; another is put in its place", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "billing.db")
		x := exporterOver(t, file, filepath.Join(dir, "outbox.db"))
		x.keep(t.Context())
		x.wantWhole(t)
		x.exec(t, "PRAGMA wal_checkpoint(TRUNCATE)")
		if err := x.db.Close(); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, info.Size()/2); err != nil {
			t.Fatal(err)
		}
		x = exporterOver(t, file, filepath.Join(dir, "outbox2.db"))
		x.keep(t.Context())
		if got := x.tells(t); got != "False/SchemaMismatch" {
			t.Errorf("the tenant is told %s", got)
		}
		if err := x.db.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file, filepath.Join(dir, "damaged.db")); err != nil {
			t.Fatal(err)
		}
		x = exporterOver(t, file, filepath.Join(dir, "outbox3.db"))
		x.keep(t.Context())
		if got := x.tells(t); got != "True/Exported" {
			t.Errorf("with another file the tenant is told %s", got)
		}
		x.wantWhole(t)
	})
}

// outboxHeld returns an exporter whose ledger is complete, and then changes the tenant. The outbox can't store the change, because another
// process holds its file until heal is called.
func outboxHeld(t *testing.T, mostUnsaved int) (x *broken, heal func()) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "outbox.db")
	x = exporterOver(t, filepath.Join(dir, "billing.db"), file)
	x.keep(t.Context())
	if got := x.tells(t); got != "True/Exported" {
		t.Fatalf("at first the tenant is told %s", got)
	}
	x.tracker.mostUnsaved = mostUnsaved
	holdFile(t, file)
	x.tracker.queue.put(&tenantFacts{name: "pay", uid: "t1", generation: 2, since: x.clock.Now(), costCenter: "4712"}, false)
	x.tracker.advance(t.Context())
	return x, func() { releaseFile(t, file) }
}

func TestOutboxTakesNothing(t *testing.T) {
	t.Run("FLT-F37 another process holds the file of the outbox while a tenant changes", func(t *testing.T) {
		x, heal := outboxHeld(t, 10*crowd)
		c := x.condition(t)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != string(v1alpha1.ReasonPending) || !strings.Contains(c.Message, "outbox") {
			t.Errorf("the tenant is told %+v", c)
		}
		heal()
		x.tracker.advance(t.Context())
		x.keep(t.Context())
		if got := x.tells(t); got != "True/Exported" {
			t.Errorf("once it has passed the tenant is told %s", got)
		}
	})
}

func TestOutboxHasNoRoom(t *testing.T) {
	t.Run("FLT-F37 more changes than there is room for: nobody is told that theirs are in the ledger until a comparison has found them",
		func(t *testing.T) {
			x, heal := outboxHeld(t, 0)
			if got := x.tells(t); got != "False/Pending" || x.tracker.isIdle() {
				t.Errorf("the tenant is told %s; idle: %t", got, x.tracker.isIdle())
			}
			heal()
			x.compareTwice(t)
			if got := x.tells(t); got != "True/Exported" || !x.tracker.isIdle() {
				t.Errorf("after a comparison the tenant is told %s; idle: %t", got, x.tracker.isIdle())
			}
		})
}

func TestOutboxUnreadable(t *testing.T) {
	t.Run("FLT-F37 the outbox can't be read, twice: everybody is told", func(t *testing.T) {
		dir := t.TempDir()
		x := exporterOver(t, filepath.Join(dir, "billing.db"), filepath.Join(dir, "outbox.db"))
		x.keep(t.Context())
		if err := x.outbox.Close(); err != nil {
			t.Fatal(err)
		}
		status := &appliedConditions{t: t}
		r := &reporter{status: status, outbox: x.outbox, keeper: x.keeper, clock: x.clock, tenants: x.tracker.tenants,
			events: record.NewFakeRecorder(1)}
		for range 2 {
			if err := r.report(t.Context()); err == nil {
				t.Error("an outbox that is closed could be read")
			}
		}
		if told := status.conditions; len(told) != 1 || told[0].Status != metav1.ConditionFalse || !strings.Contains(told[0].Message, "outbox") {
			t.Errorf("told %+v", told)
		}
	})
}

// appliedConditions records the condition in each status that is applied.
type appliedConditions struct {
	client.SubResourceWriter
	t          *testing.T
	conditions []metav1.Condition
}

func (a *appliedConditions) Apply(_ context.Context, applied runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
	text, err := json.Marshal(applied)
	lns := v1alpha1.LNamespace{}
	if err := errors.Join(err, json.Unmarshal(text, &lns)); err != nil || lns.Name != "pay" || lns.UID != "t1" ||
		len(lns.Status.Conditions) != 1 {
		a.t.Errorf("applied %s: %v", text, err)
	}
	a.conditions = append(a.conditions, lns.Status.Conditions...)
	return nil
}

// heldFiles has the connections by which other processes hold files, by file.
var heldFiles = map[string]*sql.DB{}

func holdFile(t *testing.T, file string) {
	t.Helper()
	db, err := billing.OpenSQLite(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	heldFiles[file] = db
}

func releaseFile(t *testing.T, file string) {
	t.Helper()
	if _, err := heldFiles[file].ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
}
