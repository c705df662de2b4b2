package billing

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Append stores events in batches, and returns how many were new. After an error, some batches may be stored already;
// appending all events again is harmless.
func (s *Store) Append(ctx context.Context, events []Event) (added int64, err error) {
	var b batch
	done := map[string]bool{}
	for _, event := range events {
		event = event.Sealed()
		if done[event.ID] {
			continue
		}
		done[event.ID] = true
		row, err := event.encodeRow()
		if err != nil {
			return added, err
		}
		if b.isFull(row, s.options) {
			n, err := s.insertBatch(ctx, s.text.insert, b)
			if added += n; err != nil {
				return added, err
			}
			b = batch{}
		}
		b.addRow(row, event.EffectiveAt)
	}
	n, err := s.insertBatch(ctx, s.text.insert, b)
	return added + n, err
}

// encodeRow returns the event as a JSON object, for the array that insert sends. All values are strings except
// generation and labels.
func (e Event) encodeRow() ([]byte, error) {
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

// batch is the rows of one INSERT.
type batch struct {
	rows [][]byte
	// size is the length of the rows in bytes, with the commas between them.
	size int
	// from and until are the least and the greatest effective_at of the rows.
	from, until time.Time
}

// isFull reports whether the batch has no room for the row. An empty batch always has room.
func (b *batch) isFull(row []byte, o Options) bool {
	return len(b.rows) > 0 && (len(b.rows) == o.MaxRows || b.size+len(row)+2 > o.MaxBytes)
}

func (b *batch) addRow(row []byte, at time.Time) {
	if len(b.rows) == 0 || at.Before(b.from) {
		b.from = at
	}
	if len(b.rows) == 0 || at.After(b.until) {
		b.until = at
	}
	b.rows, b.size = append(b.rows, row), b.size+len(row)+1
}

// insertBatch stores a batch by a statement, insert or copyRows, and returns how many of its rows were new.
func (s *Store) insertBatch(ctx context.Context, text string, b batch) (added int64, err error) {
	if len(b.rows) == 0 {
		return 0, nil
	}
	args := []any{"[" + string(bytes.Join(b.rows, []byte(","))) + "]"}
	if s.dialect.insertBounds {
		args = append(args, instantText(b.from), instantText(b.until))
	}
	result, err := s.db.ExecContext(ctx, text, args...)
	if err == nil {
		added, err = result.RowsAffected()
	}
	if err != nil {
		return 0, fmt.Errorf("appending %d events to %s: %w", len(b.rows), s.options.Table, err)
	}
	return added, nil
}
