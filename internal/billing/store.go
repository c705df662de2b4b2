package billing

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"time"
)

// Options determine the table, the cluster, and the limits of one INSERT.
type Options struct {
	// Table is a plain SQL name; the view of periods has that name with _periods appended.
	Table string
	// Cluster is the cluster whose periods are read. An event that is written has its own field Cluster.
	Cluster string
	// MaxRows and MaxBytes limit one INSERT: its rows, and the bytes of its JSON. Both are at least 1. A row of more
	// than MaxBytes is sent alone.
	MaxRows, MaxBytes int
	// Manage reports that Ready creates the tables and the view; otherwise it only verifies them.
	Manage bool
}

// Store reads and writes the ledger. It is safe for concurrent use, by many processes too.
type Store struct {
	db      *sql.DB
	dialect Dialect
	options Options
	text    statements
	schema  Schema
}

// NewStore returns a store, and doesn't connect yet. It fails for a table name that the engine can't have, and for
// limits below 1.
func NewStore(db *sql.DB, dialect Dialect, options Options) (*Store, error) {
	text, err := dialect.buildStatements(options.Table)
	if err != nil {
		return nil, err
	}
	if options.MaxRows < 1 || options.MaxBytes < 1 {
		return nil, fmt.Errorf("billing batch of %d rows and %d bytes: both are at least 1", options.MaxRows, options.MaxBytes)
	}
	options.Cluster = cleanText(options.Cluster)
	return &Store{db: db, dialect: dialect, options: options, text: text,
		schema: Schema{db: db, dialect: dialect, table: options.Table, text: text}}, nil
}

// Schema returns the Schema that creates and verifies the tables and views of the store.
func (s *Store) Schema() *Schema { return &s.schema }

// Ready creates the tables and the view where they are missing, if the store manages them, and verifies them.
func (s *Store) Ready(ctx context.Context) error {
	if s.options.Manage {
		return s.schema.Ensure(ctx)
	}
	return s.schema.Verify(ctx)
}

// Latest reads when the newest event of each of these namespaces took effect. Namespaces without an event are absent
// from the result.
func (s *Store) Latest(ctx context.Context, namespaces []string) (map[string]time.Time, error) {
	latest := map[string]time.Time{}
	if len(namespaces) == 0 {
		return latest, nil
	}
	list, err := json.Marshal(namespaces)
	if err != nil {
		return nil, fmt.Errorf("writing namespaces as JSON: %w", err)
	}
	type newest struct {
		namespace string
		at        instant
	}
	for event, err := range readRows(ctx, s, "the latest events", s.text.latest, func(rows *sql.Rows) (n newest, err error) {
		err = rows.Scan(&n.namespace, &n.at)
		return n, err
	}, s.options.Cluster, string(list)) {
		if err != nil {
			return nil, err
		}
		latest[event.namespace] = event.at.Time
	}
	return latest, nil
}

// readRows runs a query and yields what scan makes of each row.
func readRows[T any](ctx context.Context, s *Store, what, text string, scan func(*sql.Rows) (T, error), args ...any) iter.Seq2[T, error] {
	return wrapErrors(queryRows(ctx, s.db, text, scan, args...), func(err error) error {
		return fmt.Errorf("reading %s of %s: %w", what, s.options.Table, err)
	})
}
