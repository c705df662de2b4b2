package billing_test

import (
	"testing"
)

func TestClockSetBack(t *testing.T) {
	t.Run("BILL-52 a clock that is set back lengthens no pause", func(t *testing.T) {
		b := newBench(t, onSQLite(t))
		put(t, b.Outbox, numbered(0, 1)...)
		b.clock.SetTime(at(120))
		b.ledger.fault = always(sqlState("42501"))
		_ = b.fails(t)
		b.ledger.fault = nil
		b.clock.SetTime(at(121))
		_ = b.fails(t)
		b.clock.SetTime(at(60)) // the clock is set back by an hour
		if done := b.flush(t); done.Added != 1 {
			t.Errorf("%+v", done)
		}
	})
}
