package billing

import (
	"context"
	"database/sql"
	"iter"
)

// queryRows runs a query and yields what scan makes of each row. The first error is the last element.
func queryRows[T any](ctx context.Context, db *sql.DB, text string, scan func(*sql.Rows) (T, error), args ...any) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		rows, err := db.QueryContext(ctx, text, args...)
		if err != nil {
			yield(none, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			row, err := scan(rows)
			if !yield(row, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(none, err)
		}
	}
}

// wrapErrors yields the same elements, with each error as wrap returns it.
func wrapErrors[T any](all iter.Seq2[T, error], wrap func(error) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for one, err := range all {
			if err != nil {
				err = wrap(err)
			}
			if !yield(one, err) {
				return
			}
		}
	}
}

// collectAll returns all elements, or the first error.
func collectAll[T any](all iter.Seq2[T, error]) (list []T, err error) {
	for one, err := range all {
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}
