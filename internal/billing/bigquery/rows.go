package bigquery

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/big"
	"time"

	"cloud.google.com/go/bigquery"
	"google.golang.org/api/iterator"
)

// rows are the result of a query, fetched page by page.
type rows struct {
	found  *bigquery.RowIterator
	cancel context.CancelFunc
}

// Columns implements driver.Rows.
func (r *rows) Columns() []string {
	names := make([]string, len(r.found.Schema))
	for i, field := range r.found.Schema {
		names[i] = field.Name
	}
	return names
}

// Close implements driver.Rows.
func (r *rows) Close() error {
	r.cancel()
	return nil
}

// Next implements driver.Rows.
func (r *rows) Next(into []driver.Value) error {
	var row []bigquery.Value
	err := r.found.Next(&row)
	if errors.Is(err, iterator.Done) {
		return io.EOF
	}
	if err != nil {
		return describeError(err)
	}
	for i, value := range row {
		into[i] = valueOf(value)
	}
	return nil
}

// valueOf converts a value to a type of database/sql: JSON, dates and structures become text, exact numbers become
// decimals with 9 places.
func valueOf(value bigquery.Value) driver.Value {
	switch v := value.(type) {
	case nil, int64, float64, bool, []byte, string:
		return v
	case time.Time:
		return v.UTC()
	case *big.Rat:
		return v.FloatString(9)
	default:
		return fmt.Sprint(v)
	}
}
