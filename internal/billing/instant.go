package billing

import (
	"fmt"
	"time"
)

// instant scans a time from whatever the engine's driver gives: a time, or text in RFC 3339. Null is the zero time.
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
