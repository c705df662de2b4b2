package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/exporter"
	"github.com/warren-tenancy/warren/internal/billing/questions"
)

// copyLedger copies the ledger that path names to that of the configuration.
func (c *call) copyLedger(ctx context.Context, path string) error {
	source, err := c.findSource(path)
	if err != nil {
		return err
	}
	for _, b := range []*config.Billing{source, &c.config.Billing} {
		if err := exporter.HandOver(b); err != nil {
			return err
		}
	}
	from, fromDB, err := exporter.OpenReader(source)
	if err != nil {
		return fmt.Errorf("the ledger to copy from: %w", err)
	}
	defer func() { _ = fromDB.Close() }()
	to, toDB, err := exporter.OpenStore(&c.config.Billing)
	if err != nil {
		return err
	}
	return errors.Join(c.runCopy(ctx, to, from), toDB.Close())
}

func (c *call) runCopy(ctx context.Context, to, from *billing.Store) error {
	if err := from.Schema().VerifyTables(ctx); err != nil {
		return fmt.Errorf("the ledger to copy from: %w", from.Explain(err))
	}
	if err := to.Ready(ctx); err != nil {
		return to.Explain(err)
	}
	copied, err := to.CopyFrom(ctx, from)
	if err != nil {
		return err
	}
	t := table{columns: []string{"clusters", "rows", "copied_rows", "copied_runs"}}
	t.addRow(strings.Join(copied.Clusters, ", "), fmt.Sprint(copied.Rows), fmt.Sprint(copied.Added), fmt.Sprint(copied.Runs))
	if err := t.printTo(c.out, c.format); err != nil || c.format != "table" {
		return err
	}
	_, err = fmt.Fprintf(c.out, "All %d rows are in the new ledger, with the same values. Next: deploy the configuration with "+
		"billing.driver %s; its exporter goes on from here.\n", copied.Rows, c.config.Billing.Driver)
	return err
}

// sqliteMagic begins each file of SQLite.
var sqliteMagic = []byte("SQLite format 3\x00")

// findSource returns where the ledger is that path names: a file of SQLite, or a configuration file.
func (c *call) findSource(path string) (*config.Billing, error) {
	if path == "" {
		return nil, fmt.Errorf("--%s is missing: name the ledger to copy from, a file of SQLite or a configuration file", questions.FromFlag)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", questions.FromFlag, err)
	}
	defer func() { _ = file.Close() }()
	head := make([]byte, len(sqliteMagic))
	if _, err := io.ReadFull(file, head); err == nil && bytes.Equal(head, sqliteMagic) {
		source := c.config.Billing
		source.Driver, source.ClusterID, source.SQLite.Path = config.DriverSQLite, "", path
		return &source, nil
	}
	loaded, err := exporter.LoadConfig(path)
	if err != nil {
		problem, _, _ := strings.Cut(err.Error(), "\n") // there is a line for each problem
		return nil, fmt.Errorf("--%s: the file is neither a ledger in SQLite nor a valid configuration file: %s", questions.FromFlag, problem)
	}
	if loaded.Billing.Driver == config.DriverNone {
		return nil, fmt.Errorf("--%s %s: billing.driver is none, so there is no ledger: name the configuration of the former driver",
			questions.FromFlag, path)
	}
	return &loaded.Billing, checkFile(&loaded.Billing)
}
