package billing

import (
	"context"
	"database/sql"
	"fmt"
)

// usageTable stores rows until the warehouse has them. The rows of the current piece are not final, and each PutUsage replaces them.
const usageTable = `
CREATE TABLE IF NOT EXISTS outbox_usage (usage_id TEXT NOT NULL PRIMARY KEY, covered_from TEXT NOT NULL, namespace TEXT NOT NULL,
  final INTEGER NOT NULL, payload TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS outbox_usage_order ON outbox_usage (final, covered_from);`

// PutUsage stores the rows of finished pieces, and of the current piece in place of its former rows: all or nothing. Where more
// rows wait than the outbox may hold, it deletes the oldest pieces whole and returns the number of their rows: the ledger then
// covers nothing of their time.
func (o *Outbox) PutUsage(ctx context.Context, finished, current []Usage) (givenUp int64, err error) {
	err = o.within(ctx, "keeping hours", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM outbox_usage WHERE final = 0`); err != nil {
			return err
		}
		insert, err := tx.PrepareContext(ctx, `INSERT OR REPLACE INTO outbox_usage (usage_id, covered_from, namespace, final, payload) VALUES (?, ?, ?, ?, ?)`)
		if err != nil {
			return err
		}
		defer insert.Close()
		for final, rows := range [][]Usage{current, finished} {
			for _, u := range rows {
				payload, err := u.row()
				if err != nil {
					return err
				}
				if _, err := insert.ExecContext(ctx, u.ID(), instantText(u.CoveredFrom), u.Namespace, final, string(payload)); err != nil {
					return err
				}
			}
		}
		givenUp, err = o.shed(ctx, tx)
		return err
	})
	return givenUp, err
}

// shed deletes the oldest pieces until the final rows fit into maxRows, and returns how many rows it deleted.
func (o *Outbox) shed(ctx context.Context, tx *sql.Tx) (givenUp int64, err error) {
	for {
		var rows int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM outbox_usage WHERE final = 1`).Scan(&rows); err != nil || rows <= o.maxRows {
			return givenUp, err
		}
		result, err := tx.ExecContext(ctx, `DELETE FROM outbox_usage WHERE final = 1 AND covered_from = (SELECT min(covered_from) FROM outbox_usage WHERE final = 1)`)
		if err != nil {
			return givenUp, err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return givenUp, err
		}
		givenUp += n
	}
}

// FinishUsage makes the rows of a piece that a former process began final. Callers do so before the measuring begins.
func (o *Outbox) FinishUsage(ctx context.Context) error {
	_, err := o.db.ExecContext(ctx, `UPDATE outbox_usage SET final = 1 WHERE final = 0`)
	return o.wrap("finishing hours", err)
}

// NextUsage returns the oldest final rows, at most limit. The cluster's own row comes last in its piece, so that the piece is
// complete in the ledger once that row is there.
func (o *Outbox) NextUsage(ctx context.Context, limit int) (waiting []Usage, err error) {
	rows, err := o.db.QueryContext(ctx, `SELECT payload FROM outbox_usage WHERE final = 1 ORDER BY covered_from, namespace = '', namespace LIMIT ?`, limit)
	if err != nil {
		return nil, o.wrap("reading hours", err)
	}
	defer rows.Close()
	for rows.Next() {
		var payload string
		if err := rows.Scan(&payload); err != nil {
			return nil, o.wrap("reading hours", err)
		}
		u, err := parseUsage(payload)
		if err != nil {
			return nil, o.wrap("reading hours", err)
		}
		waiting = append(waiting, u)
	}
	return waiting, o.wrap("reading hours", rows.Err())
}

// DeleteUsage removes rows that the warehouse has now.
func (o *Outbox) DeleteUsage(ctx context.Context, sent []Usage) error {
	return o.within(ctx, "deleting hours", func(tx *sql.Tx) error {
		for _, u := range sent {
			if _, err := tx.ExecContext(ctx, `DELETE FROM outbox_usage WHERE usage_id = ?`, u.ID()); err != nil {
				return fmt.Errorf("%s: %w", u.Namespace, err)
			}
		}
		return nil
	})
}

// WaitingUsage counts the final rows.
func (o *Outbox) WaitingUsage(ctx context.Context) (rows int, err error) {
	err = o.db.QueryRowContext(ctx, `SELECT count(*) FROM outbox_usage WHERE final = 1`).Scan(&rows)
	return rows, o.wrap("counting hours", err)
}
