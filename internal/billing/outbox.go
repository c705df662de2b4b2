package billing

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"
)

// ErrOutboxFull is returned by Put for events that the outbox has no room for. They are not lost: the next comparison of cluster
// and ledger finds them again.
var ErrOutboxFull = errors.New("the billing outbox is full")

// mostParked is how many parked events are kept: events that the warehouse refused.
const mostParked = 10_000

const outboxTables = `
CREATE TABLE IF NOT EXISTS outbox (seq INTEGER PRIMARY KEY AUTOINCREMENT, event_id TEXT NOT NULL UNIQUE, payload TEXT NOT NULL,
  queued_at TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS parked (event_id TEXT NOT NULL PRIMARY KEY, payload TEXT NOT NULL, reason TEXT NOT NULL,
  parked_at TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS held (event_id TEXT NOT NULL PRIMARY KEY, payload TEXT NOT NULL) STRICT;`

// Outbox is a local file with events that the warehouse doesn't have yet, in the order in which they came. One process at a time
// opens it. Events survive a crash once Put has returned without an error.
type Outbox struct {
	db      *sql.DB
	path    string
	maxRows int
	clock   clock.PassiveClock
}

// Queued is an event in the outbox.
type Queued struct {
	Seq      int64
	Event    Event
	QueuedAt time.Time
}

// Parked is an event that the warehouse refused as data, and why.
type Parked struct {
	Event    Event
	Reason   string
	ParkedAt time.Time
}

// OpenOutbox opens the file, or creates it. The outbox holds at most maxRows events.
func OpenOutbox(ctx context.Context, path string, maxRows int, clock clock.PassiveClock) (*Outbox, error) {
	db, err := OpenSQLite(path)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // several connections would only wait for each other; with one, no two transactions run at the same time
	if _, err := db.ExecContext(ctx, outboxTables); err != nil {
		return nil, errors.Join(fmt.Errorf("opening billing outbox %s: %w", path, err), db.Close())
	}
	return &Outbox{db: db, path: path, maxRows: maxRows, clock: clock}, nil
}

// Close closes the file.
func (o *Outbox) Close() error { return o.db.Close() }

// Put queues all of these events or none. An event that is queued already keeps its place.
func (o *Outbox) Put(ctx context.Context, events ...Event) error {
	return o.runTransaction(ctx, "queueing events", func(tx *sql.Tx) error {
		for _, event := range events {
			event = event.Sealed()
			payload, err := event.row()
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO outbox (event_id, payload, queued_at)
SELECT ?1, ?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM outbox WHERE event_id = ?1)`, event.ID, string(payload),
				instantText(o.clock.Now())); err != nil {
				return err
			}
		}
		// Rows are deleted from the oldest batch only, so max - min + 1 is their number, or a few more, without a scan. The INSERT has no ON
		// CONFLICT, which would use up a seq for each row that is there already.
		var rows int
		if err := tx.QueryRowContext(ctx, `SELECT coalesce((SELECT max(seq) FROM outbox) - (SELECT min(seq) FROM outbox) + 1, 0)`).
			Scan(&rows); err != nil {
			return err
		}
		if rows > o.maxRows {
			return fmt.Errorf("%w: it holds %d events", ErrOutboxFull, o.maxRows)
		}
		return nil
	})
}

// Next returns the oldest events, at most limit.
func (o *Outbox) Next(ctx context.Context, limit int) ([]Queued, error) {
	queued, err := collectAll(queryRows(ctx, o.db, `SELECT seq, payload, queued_at FROM outbox ORDER BY seq LIMIT ?`,
		func(rows *sql.Rows) (q Queued, err error) {
			var at instant
			err = rows.Scan(&q.Seq, (*storedEvent)(&q.Event), &at)
			q.QueuedAt = at.Time
			return q, err
		}, limit))
	return queued, o.wrapError("reading", err)
}

// storedEvent reads an event from its JSON in a column.
type storedEvent Event

// Scan implements sql.Scanner.
func (e *storedEvent) Scan(payload any) error {
	text, ok := payload.(string)
	if !ok {
		return fmt.Errorf("an event is stored as %T, not as text", payload)
	}
	return json.Unmarshal([]byte(text), (*Event)(e))
}

// Delete removes events that the warehouse has stored, from the outbox and from the parked events.
func (o *Outbox) Delete(ctx context.Context, sent []Queued) error {
	seqs := make([]int64, len(sent))
	for i, q := range sent {
		seqs[i] = q.Seq
	}
	list, err := json.Marshal(seqs)
	if err != nil {
		return o.wrapError("deleting events", err)
	}
	const ours = `(SELECT value FROM json_each(?))`
	return o.runTransaction(ctx, "deleting events", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM parked WHERE event_id IN (SELECT event_id FROM outbox WHERE seq IN `+ours+`)`,
			string(list)); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM outbox WHERE seq IN `+ours, string(list))
		return err
	})
}

// Park moves an event that the warehouse refuses to the table of parked events, so that it delays no other. An event that is put
// again is tried again.
func (o *Outbox) Park(ctx context.Context, refused Queued, reason error) error {
	payload, err := refused.Event.row()
	if err != nil {
		return err
	}
	return o.runTransaction(ctx, "parking an event", func(tx *sql.Tx) error {
		for _, step := range []struct {
			text string
			args []any
		}{
			{`INSERT OR REPLACE INTO parked (event_id, payload, reason, parked_at) VALUES (?, ?, ?, ?)`,
				[]any{refused.Event.ID, string(payload), reason.Error(), instantText(o.clock.Now())}},
			{`DELETE FROM outbox WHERE seq = ?`, []any{refused.Seq}},
			{`DELETE FROM parked WHERE event_id IN (SELECT event_id FROM parked ORDER BY parked_at DESC LIMIT -1 OFFSET ?)`, []any{mostParked}},
		} {
			if _, err := tx.ExecContext(ctx, step.text, step.args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// Parked returns the parked events, the last parked first, at most limit.
func (o *Outbox) Parked(ctx context.Context, limit int) ([]Parked, error) {
	parked, err := collectAll(queryRows(ctx, o.db, `SELECT payload, reason, parked_at FROM parked ORDER BY parked_at DESC, event_id LIMIT ?`,
		func(rows *sql.Rows) (p Parked, err error) {
			var at instant
			err = rows.Scan((*storedEvent)(&p.Event), &p.Reason, &at)
			p.ParkedAt = at.Time
			return p, err
		}, limit))
	return parked, o.wrapError("reading what was parked", err)
}

// Unpark queues all parked events again, because the warehouse may take them by now.
func (o *Outbox) Unpark(ctx context.Context) error {
	return o.runTransaction(ctx, "queueing what was parked", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `INSERT INTO outbox (event_id, payload, queued_at)
SELECT event_id, payload, ? FROM parked AS p WHERE NOT EXISTS (SELECT 1 FROM outbox WHERE event_id = p.event_id)`,
			instantText(o.clock.Now())); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM parked`)
		return err
	})
}

// Hold stores the ENDs that a comparison held back, in place of those stored before. So a restart neither forgets them nor queues
// them too soon.
func (o *Outbox) Hold(ctx context.Context, held []Event) error {
	return o.runTransaction(ctx, "keeping what is held back", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM held`); err != nil {
			return err
		}
		for _, event := range held {
			payload, err := event.row()
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO held (event_id, payload) VALUES (?, ?)`, event.Sealed().ID, string(payload)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Held returns the ENDs that the last comparison held back.
func (o *Outbox) Held(ctx context.Context) ([]Event, error) {
	return o.events(ctx, `SELECT payload FROM held ORDER BY event_id`)
}

// All returns all queued events, the oldest first.
func (o *Outbox) All(ctx context.Context) ([]Event, error) {
	return o.events(ctx, `SELECT payload FROM outbox ORDER BY seq`)
}

func (o *Outbox) events(ctx context.Context, text string) ([]Event, error) {
	events, err := collectAll(queryRows(ctx, o.db, text, func(rows *sql.Rows) (e Event, err error) {
		return e, rows.Scan((*storedEvent)(&e))
	}))
	return events, o.wrapError("reading", err)
}

// Waiting returns the number of queued events, and when the oldest of them was queued; zero if there is none.
func (o *Outbox) Waiting(ctx context.Context) (events int, since time.Time, err error) {
	var oldest instant
	err = o.db.QueryRowContext(ctx, `SELECT count(*), (SELECT queued_at FROM outbox ORDER BY seq LIMIT 1) FROM outbox`).
		Scan(&events, &oldest)
	return events, oldest.Time, o.wrapError("counting events", err)
}

// WaitingTenants returns when the oldest queued event of each tenant was queued, by the tenant's UID.
func (o *Outbox) WaitingTenants(ctx context.Context) (map[string]time.Time, error) {
	since := map[string]time.Time{}
	_, err := collectAll(queryRows(ctx, o.db, `SELECT payload ->> 'tenant_uid', min(queued_at) FROM outbox GROUP BY 1`,
		func(rows *sql.Rows) (tenant string, err error) {
			var at instant
			err = rows.Scan(&tenant, &at)
			since[tenant] = at.Time
			return tenant, err
		}))
	return since, o.wrapError("counting events", err)
}

// runTransaction runs the steps in one transaction.
func (o *Outbox) runTransaction(ctx context.Context, doing string, steps func(*sql.Tx) error) error {
	tx, err := o.db.BeginTx(ctx, nil)
	if err != nil {
		return o.wrapError(doing, err)
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	if err := steps(tx); err != nil {
		return o.wrapError(doing, err)
	}
	return o.wrapError(doing, tx.Commit())
}

func (o *Outbox) wrapError(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("billing outbox %s: %s: %w", o.path, doing, err)
}
