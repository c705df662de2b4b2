package billing_test

import (
	"strings"
	"testing"

	"github.com/warren-tenancy/warren/internal/billing"
)

func TestChangedAccount(t *testing.T) {
	t.Run("BILL-49 PostgreSQL refuses the account: AccessDenied; "+
		"with another account the next try stores the events, without a restart", func(t *testing.T) {
		e := onPostgres(t)
		e.ledger(t)
		dsn := strings.Replace(e.dsn, "user=warren", "user=stranger", 1)
		db := billing.OpenPostgresBy(func() (string, error) { return dsn, nil })
		t.Cleanup(func() { _ = db.Close() })
		store := e.store(t, db)
		_, err := store.Append(t.Context(), []billing.Event{set(1, "4711", nine)})
		if err == nil || store.Trouble(err) != billing.Denied {
			t.Fatalf("%v is %s", err, store.Trouble(err))
		}
		dsn = e.dsn
		if added := appended(t, store, set(1, "4711", nine)); added != 1 {
			t.Error(added)
		}
	})
}
