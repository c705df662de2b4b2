package exporter

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/forest"
	ledgertest "github.com/warren-tenancy/warren/test/ledger"
)

// crowd is the number of the tenant's namespaces. Their rows need more pages than the file of a case with a full disk may have.
const crowd = 500

// broken is an exporter with a ledger in a file, and without an API server: the case passes facts in place of the watches.
type broken struct {
	*keeper
	db    *sql.DB // of the ledger; with one connection, a PRAGMA applies to every statement
	file  string
	clock *clocktesting.FakePassiveClock
	skew  int // of the clock, in hours, in a story with skewed clocks
}

func exporterOver(t *testing.T, file string) *broken {
	t.Helper()
	db, err := billing.OpenSQLite(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	store, err := billing.NewStore(db, billing.SQLite, billing.Options{Table: "ledger", Cluster: "c", MaxRows: crowd, MaxBytes: 1 << 20,
		Manage: true})
	if err != nil {
		t.Fatal(err)
	}
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC))
	track := newTracker("c", forest.Rules{}, nil, now.Now)
	track.takeChange(&tenantFacts{name: "pay", uid: "t1", generation: 1, since: now.Now(), costCenter: "4711"}, false)
	for i := range crowd {
		track.takeChange(root(fmt.Sprintf("pay-%d", i), fmt.Sprint("n", i), "pay", now.Now()), false)
	}
	track.beginTracking()
	return &broken{db: db, file: file, clock: now, keeper: &keeper{store: store, tracker: track, clock: now, timeout: time.Minute,
		compareEvery: time.Hour, events: record.NewFakeRecorder(100), askedToEnd: func() bool { return true },
		run: billing.Run{ID: "r", Exporter: "pod", StartedAt: now.Now()}}}
}

// root returns the facts of a namespace. Number 0 is the root of tenant pay, the others are below it.
func root(name, uid, parent string, made time.Time) *namespaceFacts {
	n := &forest.Namespace{Name: name, UID: uid, Labels: map[string]string{v1alpha1.LabelParent: parent}}
	if uid == "n0" {
		n.Name, n.Labels = "pay", map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}
	}
	return &namespaceFacts{Namespace: n, owner: "t1", made: made}
}

// see lets the watches confirm that everything is known until now.
func (x *broken) see() {
	for _, f := range x.tracker.feeds {
		f.recordConfirmed()
	}
}

// condition returns the condition that the exporter would report to the tenant now; nil if it would report none.
func (x *broken) condition(t *testing.T) *metav1.Condition {
	t.Helper()
	return (&reporter{keeper: x.keeper, clock: x.clock}).readSituation().buildCondition("t1", time.Hour)
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
		x.see()
		x.runDue(t.Context())
	}
}

// history returns all periods of the tenant.
func (x *broken) history(t *testing.T) []ledgertest.Period {
	t.Helper()
	periods, err := ledgertest.Periods(t.Context(), x.db, "ledger", "tenant = 'pay'")
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
		t.Run("FLT-F37 while the disk is full or the ledger's file locked, BillingExported is WarehouseUnavailable, while it is read-only, "+
			"AccessDenied; then it is True, and the ledger complete: "+name, func(t *testing.T) {
			dir := t.TempDir()
			x := exporterOver(t, filepath.Join(dir, "billing.db"))
			if err := x.ensureTable(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.happens(t, x)
			x.runDue(t.Context())
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
	t.Run("FLT-F37 a truncated ledger is SchemaMismatch; when an admin has moved the file away, BillingExported is True, and a new ledger "+
		"has the open periods, each once", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "billing.db")
		x := exporterOver(t, file)
		x.runDue(t.Context())
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
		x = exporterOver(t, file)
		x.runDue(t.Context())
		if got := x.tells(t); got != "False/SchemaMismatch" {
			t.Errorf("the tenant is told %s", got)
		}
		if err := x.db.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file, filepath.Join(dir, "damaged.db")); err != nil {
			t.Fatal(err)
		}
		x = exporterOver(t, file)
		x.runDue(t.Context())
		if got := x.tells(t); got != "True/Exported" {
			t.Errorf("with another file the tenant is told %s", got)
		}
		x.wantWhole(t)
	})
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
