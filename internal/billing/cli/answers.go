package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/warren-tenancy/warren/internal/billing/exporter"
	"github.com/warren-tenancy/warren/internal/billing/questions"
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
		t.addRow(r.Exporter, r.Version, describeCell(r.StartedAt), describeCell(r.CompleteUntil), r.ID)
	}
	if len(runs) == 0 && c.format == "table" {
		_, err := fmt.Fprintln(c.out, "No exporter has completed a comparison of this cluster with the ledger yet.")
		return err
	}
	return t.printTo(c.out, c.format)
}

// queries are the words that begin a statement with an answer. Any other statement answers how many rows it changed.
var queries = []string{"SELECT", "WITH", "EXPLAIN", "VALUES"}

// runSQL runs one statement on the ledger, with the exporter's account.
func runSQL(ctx context.Context, c *call) error {
	first, _, _ := strings.Cut(strings.Join(strings.Fields(c.word), " "), " ")
	if c.write && !slices.Contains(queries, strings.ToUpper(first)) {
		return runChange(ctx, c)
	}
	t, err := queryTable(ctx, c)
	switch {
	case err == nil:
		return t.printTo(c.out, c.format)
	case c.store.IsRefusedWrite(err): // err.Error() and not %w, because Explain would advise on the volume
		return fmt.Errorf("the ledger is open for reading alone, and the statement would change it (%s): if you mean that, add --%s",
			err.Error(), questions.WriteFlag)
	}
	return fmt.Errorf("the ledger refused the query: %w", err)
}

func runChange(ctx context.Context, c *call) error {
	result, err := c.db.ExecContext(ctx, c.word)
	if err != nil {
		return fmt.Errorf("the ledger refused the statement: %w", err)
	}
	changed, err := result.RowsAffected()
	if err != nil {
		return fmt.Errorf("counting the changed rows: %w", err)
	}
	return (&table{columns: []string{"changed_rows"}, rows: [][]string{{fmt.Sprint(changed)}}}).printTo(c.out, c.format)
}

func queryTable(ctx context.Context, c *call) (*table, error) {
	rows, err := c.db.QueryContext(ctx, c.word)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	t := &table{}
	if t.columns, err = rows.Columns(); err != nil {
		return nil, err
	}
	values, targets := make([]any, len(t.columns)), make([]any, len(t.columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		var fields []string
		for _, value := range values {
			fields = append(fields, describeCell(value))
		}
		t.addRow(fields...)
	}
	return t, rows.Err()
}

// describeCell returns a value as text: times in RFC 3339, and "" for NULL.
func describeCell(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case []byte:
		return string(v)
	}
	return fmt.Sprint(value)
}

// printDDL prints the statements that an administrator runs where the exporter may not create the table
// (billing.schema).
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
		t.addRow(text)
	}
	return t.printTo(c.out, c.format)
}
