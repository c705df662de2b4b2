package billing

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"time"
)

// Options say which table, of which cluster, and how much one statement may hold.
type Options struct {
	// Table is a plain SQL name; the view of periods has that name with _periods appended.
	Table string
	// Cluster is the cluster whose periods are read. Events that are written name their own.
	Cluster string
	// MaxRows and MaxBytes limit one INSERT: its rows, and the bytes of its JSON. Both are at least 1. A row of more than MaxBytes
	// is sent alone.
	MaxRows, MaxBytes int
}

// Store reads and writes the ledger. It is safe for concurrent use, by many processes too.
type Store struct {
	db      *sql.DB
	dialect Dialect
	options Options
	text    statements
}

// NewStore returns a store, and doesn't connect yet. It fails for a table name that the engine can't have, and for limits below 1.
func NewStore(db *sql.DB, dialect Dialect, options Options) (*Store, error) {
	text, err := dialect.statements(options.Table)
	if err != nil {
		return nil, err
	}
	if options.MaxRows < 1 || options.MaxBytes < 1 {
		return nil, fmt.Errorf("billing batch of %d rows and %d bytes: both are at least 1", options.MaxRows, options.MaxBytes)
	}
	options.Cluster = clean(options.Cluster)
	return &Store{db: db, dialect: dialect, options: options, text: text}, nil
}

// Append stores events, in batches, and returns how many were new. After an error some batches may be stored; to append all
// of them again is harmless.
func (s *Store) Append(ctx context.Context, events []Event) (added int64, err error) {
	return s.insert(ctx, s.text.insert, "events to "+s.options.Table, func(yield func(insertion, error) bool) {
		done := map[string]bool{}
		for _, event := range events {
			event = event.Sealed()
			if done[event.ID] {
				continue
			}
			done[event.ID] = true
			row, err := event.row()
			if !yield(insertion{row, event.EffectiveAt}, err) {
				return
			}
		}
	})
}

// insertion is a row as JSON, and the instant that its table is partitioned by.
type insertion struct {
	json []byte
	at   time.Time
}

// insert sends rows by a statement, in batches and in their order, and returns how many were new. For error messages, what names
// the rows and their table.
func (s *Store) insert(ctx context.Context, statement, what string, rows iter.Seq2[insertion, error]) (added int64, err error) {
	for batch, err := range s.batches(rows) {
		if err != nil {
			return added, err
		}
		result, err := s.db.ExecContext(ctx, statement, s.arguments(batch)...)
		if err != nil {
			return added, fmt.Errorf("appending %d %s: %w", batch.rows, what, err)
		}
		n, err := result.RowsAffected()
		if err != nil {
			return added, fmt.Errorf("counting the new ones of %d %s: %w", batch.rows, what, err)
		}
		added += n
	}
	return added, nil
}

// batch is the rows of one INSERT.
type batch struct {
	// json is an array of the rows.
	json string
	rows int
	// from and until are the least and the greatest of the rows' instants.
	from, until time.Time
}

func (s *Store) arguments(b batch) []any {
	if s.dialect.insertBounds {
		return []any{b.json, instantText(b.from), instantText(b.until)}
	}
	return []any{b.json}
}

// batches yields the rows in their order, as many at a time as one statement may hold. It ends with the first error.
func (s *Store) batches(rows iter.Seq2[insertion, error]) iter.Seq2[batch, error] {
	return func(yield func(batch, error) bool) {
		var b batch
		var array bytes.Buffer
		for row, err := range rows {
			if err != nil {
				yield(batch{}, err)
				return
			}
			if b.rows > 0 && (b.rows == s.options.MaxRows || array.Len()+len(row.json)+2 > s.options.MaxBytes) {
				if b.json = array.String() + "]"; !yield(b, nil) {
					return
				}
				array.Reset()
				b = batch{}
			}
			array.WriteByte("[,"[min(b.rows, 1)])
			array.Write(row.json)
			b.add(row.at)
		}
		if b.json = array.String() + "]"; b.rows > 0 {
			yield(b, nil)
		}
	}
}

// add counts a row of that instant.
func (b *batch) add(at time.Time) {
	if b.rows == 0 || at.Before(b.from) {
		b.from = at
	}
	if b.rows == 0 || at.After(b.until) {
		b.until = at
	}
	b.rows++
}

// row returns the event as a JSON object, for an INSERT's array and for the outbox. All columns are strings except generation and labels.
func (e Event) row() ([]byte, error) {
	type columns Event
	sealed := e.Sealed()
	text, err := json.Marshal(struct {
		columns
		EffectiveAt string `json:"effective_at"`
	}{columns(sealed), instantText(sealed.EffectiveAt)})
	if err != nil {
		return nil, fmt.Errorf("writing %s as JSON: %w", e, err)
	}
	return text, nil
}

// Holding is a namespace and the UID of a tenant that holds, or held, that namespace.
type Holding struct{ Namespace, TenantUID string }

// Latest says when the newest events of some namespaces took effect: the newest SET of each namespace, the newest END of each
// namespace and tenant.
type Latest struct {
	Sets map[string]time.Time
	Ends map[Holding]time.Time
}

// Latest reads the newest events of these namespaces. Namespaces without such an event are absent from the result.
func (s *Store) Latest(ctx context.Context, namespaces []string) (Latest, error) {
	latest := Latest{map[string]time.Time{}, map[Holding]time.Time{}}
	if len(namespaces) == 0 {
		return latest, nil
	}
	list, err := json.Marshal(namespaces)
	if err != nil {
		return latest, fmt.Errorf("writing namespaces as JSON: %w", err)
	}
	type event struct {
		Holding
		op Op
		at instant
	}
	for e, err := range read(ctx, s, "the latest events", s.text.latest, func(rows *sql.Rows) (e event, err error) {
		err = rows.Scan(&e.Namespace, &e.TenantUID, &e.op, &e.at)
		return e, err
	}, s.options.Cluster, string(list)) {
		switch {
		case err != nil:
			return latest, err
		case e.op == End:
			latest.Ends[e.Holding] = e.at.Time
		case e.at.After(latest.Sets[e.Namespace]):
			latest.Sets[e.Namespace] = e.at.Time
		}
	}
	return latest, nil
}

// read runs a query and yields what scan makes of each row.
func read[T any](ctx context.Context, s *Store, what, query string, scan func(*sql.Rows) (T, error), args ...any) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		fail := func(err error) { yield(none, fmt.Errorf("reading %s of %s: %w", what, s.options.Table, err)) }
		rows, err := s.db.QueryContext(ctx, query, args...)
		if err != nil {
			fail(err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			row, err := scan(rows)
			if err != nil {
				fail(err)
				return
			}
			if !yield(row, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			fail(err)
		}
	}
}
