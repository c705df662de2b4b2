package billing

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"iter"
	"time"
)

// inserter sends rows to the tables of a ledger, in batches of limited size.
type inserter struct {
	db *sql.DB
	// maxRows and maxBytes limit one INSERT: its rows, and the bytes of its JSON.
	maxRows, maxBytes int
	// bounds says that an INSERT is told the first and the last instant of its rows, so that the engine reads only these partitions.
	bounds bool
}

// insertion is a row as JSON, and the instant that its table is partitioned by.
type insertion struct {
	json []byte
	at   time.Time
}

// insert sends rows by a statement, in batches and in their order, and returns how many were new. For error messages, what names
// the rows and their table.
func (i *inserter) insert(ctx context.Context, statement, what string, rows iter.Seq2[insertion, error]) (added int64, err error) {
	for batch, err := range i.batches(rows) {
		if err != nil {
			return added, err
		}
		result, err := i.db.ExecContext(ctx, statement, i.arguments(batch)...)
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

func (i *inserter) arguments(b batch) []any {
	if i.bounds {
		return []any{b.json, instantText(b.from), instantText(b.until)}
	}
	return []any{b.json}
}

// batches yields the rows in their order, as many at a time as one statement may hold. It ends with the first error.
func (i *inserter) batches(rows iter.Seq2[insertion, error]) iter.Seq2[batch, error] {
	return func(yield func(batch, error) bool) {
		var b batch
		var array bytes.Buffer
		for row, err := range rows {
			if err != nil {
				yield(batch{}, err)
				return
			}
			if b.rows > 0 && (b.rows == i.maxRows || array.Len()+len(row.json)+2 > i.maxBytes) {
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
