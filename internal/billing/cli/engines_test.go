package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/cli"
	"github.com/warren-tenancy/warren/internal/billing/exporter"
	"github.com/warren-tenancy/warren/test/postgres"
)

const cluster = "acme/europe-west1/main"

// desk is the setting of a case: a configuration and the ledger that it names.
type desk struct {
	config string
	store  *billing.Store
	// file is the file of the ledger; "" with other engines than SQLite.
	file string
}

// onEngines runs body with each engine, on a ledger whose table and view exist.
func onEngines(t *testing.T, body func(t *testing.T, d desk)) {
	t.Run("sqlite", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "billing.db")
		body(t, opened(t, "sqlite", fmt.Sprintf("sqlite: {path: %q}", file), file))
	})
	t.Run("postgres", func(t *testing.T) {
		postgres.Require(t)
		server, err := postgres.Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Stop)
		dsn := filepath.Join(t.TempDir(), "dsn")
		write(t, dsn, server.DSN+"\n")
		body(t, opened(t, "postgres", fmt.Sprintf("postgres: {dsnFile: %q}", dsn), ""))
	})
}

func opened(t *testing.T, driver, engine, file string) desk {
	t.Helper()
	return desk{config: configured(t, driver, engine), file: file}.reopened(t)
}

// reopened returns the desk with a store, whose table and view exist.
func (d desk) reopened(t *testing.T) desk {
	t.Helper()
	c, err := exporter.LoadConfig(d.config)
	if err != nil {
		t.Fatal(err)
	}
	store, db, err := exporter.OpenStore(&c.Billing)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := store.Schema().Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.store = store
	return d
}

// configured writes a configuration file and returns its path.
func configured(t *testing.T, driver, engine string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, fmt.Sprintf("apiVersion: config.tenancy.warren.dev/v1alpha1\nkind: OperatorConfiguration\nbilling:\n  driver: %s\n  "+
		"clusterID: %s\n  %s\n",
		driver, cluster, engine))
	return path
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ask runs a subcommand and returns what it printed.
func (d desk) ask(t *testing.T, line ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := cli.Run(t.Context(), append(line, "--config="+d.config), &out)
	return out.String(), err
}

// told returns the output of a subcommand, which must succeed.
func (d desk) told(t *testing.T, line ...string) string {
	t.Helper()
	out, err := d.ask(t, line...)
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(line, " "), err)
	}
	return out
}

// instant returns the time as the engine prints it.
func (d desk) instant(at time.Time) string {
	if d.file != "" {
		return at.Format("2006-01-02T15:04:05.000000Z")
	}
	return at.Format(time.RFC3339Nano)
}

var nine = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// paid appends that, from since on, namespace payments is billed to this cost center and owner. Its tenant has the same name.
func (d desk) paid(t *testing.T, costCenter, owner string, since time.Time) {
	t.Helper()
	_, err := d.store.Append(t.Context(),
		[]billing.Event{{Cluster: cluster, Namespace: "payments", NamespaceUID: "n1", Tenant: "payments", TenantUID: "t1",
			Generation: 1, Op: billing.Set, CostCenter: costCenter, Owner: owner, Labels: map[string]string{"product": "checkout"},
			EffectiveAt: since}})
	if err != nil {
		t.Fatal(err)
	}
}
