package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/exporter"
)

func printStatus(ctx context.Context, c *call) error {
	if err := c.store.Schema().Verify(ctx); err != nil {
		return err
	}
	runs, err := c.store.Runs(ctx)
	if err != nil {
		return err
	}
	t := table{columns: []string{"exporter", "version", "started_at", "complete_until", "run_id"}}
	for _, r := range runs {
		t.add(r.Exporter, r.Version, stamp(r.StartedAt), stamp(r.CompleteUntil), r.ID)
	}
	if len(runs) == 0 && c.format == "table" {
		_, err := fmt.Fprintln(c.out, "No exporter has completed a comparison of this cluster with the ledger yet.")
		return err
	}
	return t.write(c.out, c.format)
}

func printHistory(ctx context.Context, c *call) error {
	periods, err := c.store.History(ctx, c.word)
	if err != nil {
		return err
	}
	if len(periods) == 0 {
		return fmt.Errorf("tenant %q has no period in the ledger: `manager billing at NOW` lists the tenants that have one now", c.word)
	}
	reasons, err := c.store.Reasons(ctx, c.word)
	if err != nil {
		return err
	}
	corrected := map[string]string{}
	for _, r := range reasons {
		corrected[r.EventID] = r.Author + ": " + r.Reason
	}
	t := table{columns: append(periodColumns(), "corrected_by")}
	for _, p := range periods {
		t.add(append(row(p), corrected[p.EventID])...)
	}
	return t.write(c.out, c.format)
}

func printHolders(ctx context.Context, c *call) error {
	at := time.Now()
	if !strings.EqualFold(c.word, "now") {
		var err error
		if at, err = parseInstant("TIME", c.word); err != nil {
			return err
		}
	}
	periods, err := c.store.Holders(ctx, at)
	if err != nil {
		return err
	}
	t := table{columns: periodColumns()}
	for _, p := range periods {
		t.add(row(p)...)
	}
	return t.write(c.out, c.format)
}

// printPeriods writes all periods. CSV and JSON have all columns of the view; the table for people has the most important.
func printPeriods(ctx context.Context, c *call) error {
	if c.format == "csv" {
		return c.store.Export(ctx, c.out)
	}
	t := table{columns: periodColumns()}
	if c.format == "json" {
		t.columns = billing.PeriodColumns()
	}
	for p, err := range c.store.All(ctx) {
		if err != nil {
			return err
		}
		if c.format == "table" {
			t.add(row(p)...)
			continue
		}
		record, err := p.Record()
		if err != nil {
			return err
		}
		t.add(record...)
	}
	return t.write(c.out, c.format)
}

// printDDL prints the statements that an administrator runs where the exporter may not create the table (billing.schema).
func printDDL(_ context.Context, c *call) error {
	dialect, err := exporter.Dialect(&c.config.Billing)
	if err != nil {
		return err
	}
	texts, err := dialect.DDL(c.config.Billing.Table)
	if err != nil {
		return err
	}
	if c.format == "table" {
		_, err = fmt.Fprintln(c.out, strings.Join(texts, ";\n\n")+";")
		return err
	}
	t := table{columns: []string{"statement"}}
	for _, text := range texts {
		t.add(text)
	}
	return t.write(c.out, c.format)
}

func periodColumns() []string {
	return []string{"namespace", "tenant", "cost_center", "owner", "valid_from", "valid_to"}
}

func row(p billing.Period) []string {
	return []string{p.Namespace, p.Tenant, p.CostCenter, p.Owner, stamp(p.ValidFrom), stamp(p.ValidTo)}
}

// stamp returns the time in RFC 3339; "" for the zero time, the end of a period that lasts.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
