package billing

import (
	"fmt"
	"time"
)

// instant is a time that can be scanned from a column: drivers return a time.Time, or text in RFC 3339. NULL becomes
// the zero time.
type instant struct{ time.Time }

// Scan implements sql.Scanner.
func (i *instant) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		i.Time = time.Time{}
	case time.Time:
		i.Time = v.UTC()
	case string:
		t, err := time.Parse(time.RFC3339Nano, v)
		if err != nil {
			return err
		}
		i.Time = t.UTC()
	default:
		return fmt.Errorf("a %T is no time", value)
	}
	return nil
}
