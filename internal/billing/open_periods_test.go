package billing_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/test/ledger"
)

// For any history, OpenPeriods returns the open periods of the view. The histories have repeated and late rows, outdated ENDs, namespaces
// that were made again, and several changes at one time.
func TestOpenPeriodsAreTheViews(t *testing.T) {
	const names, rounds = 40, 6
	onEngines(t, func(t *testing.T, e engine) {
		store := e.ledger(t)
		random := rand.New(rand.NewPCG(7, 7))
		for round := range rounds {
			var events []billing.Event
			for range 120 {
				name, uid := fmt.Sprintf("ns-%02d", random.IntN(names)), fmt.Sprint(1+random.IntN(2))
				event := set(int64(random.IntN(3)), fmt.Sprint(random.IntN(2)), at(float64(random.IntN(12))))
				if random.IntN(3) == 0 {
					event = end(int64(random.IntN(3)), "t1", at(float64(random.IntN(12))))
				}
				event.Namespace, event.NamespaceUID, event.TenantUID = name, "n"+uid, "t"+fmt.Sprint(1+random.IntN(2))
				events = append(events, event)
			}
			appended(t, store, events...)
			want, got := []string{}, []string{}
			all, err := ledger.Periods(t.Context(), store.DB(), "ledger", "")
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range all {
				if p.ValidTo.IsZero() {
					want = append(want, fmt.Sprint(p.Namespace, p.NamespaceUID, p.Tenant, p.TenantUID, p.Generation, p.CostCenter, p.Owner, p.ContentHash,
						p.ValidFrom.Format(time.RFC3339Nano)))
				}
			}
			for _, p := range openIn(t, store) {
				got = append(got, fmt.Sprint(p.Namespace, p.NamespaceUID, p.Tenant, p.TenantUID, p.Generation, p.CostCenter, p.Owner, p.ContentHash,
					p.ValidFrom.Format(time.RFC3339Nano)))
			}
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 || len(want) == names {
				t.Fatalf("round %d, %d open: -view, +OpenPeriods:\n%s", round, len(want), diff)
			}
		}
	})
}
