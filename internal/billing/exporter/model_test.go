package exporter

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/warren-tenancy/warren/internal/billing"
	ledgertest "github.com/warren-tenancy/warren/test/ledger"
)

// modelLedger is a ledger in memory.
type modelLedger struct {
	ledger
	events map[string]billing.Event
	until  map[string]time.Time
}

func (m *modelLedger) Ready(context.Context) error { return nil }

func (m *modelLedger) Explain(err error) error { return err }

func (m *modelLedger) Sift(_ context.Context, events []billing.Event) (int64, []billing.Refused, error) {
	for _, e := range events {
		m.events[e.ID] = e
	}
	return int64(len(events)), nil, nil
}

func (m *modelLedger) Latest(_ context.Context, names []string) (map[string]time.Time, error) {
	latest := map[string]time.Time{}
	for _, e := range m.events {
		if slices.Contains(names, e.Namespace) && e.EffectiveAt.After(latest[e.Namespace]) {
			latest[e.Namespace] = e.EffectiveAt
		}
	}
	return latest, nil
}

func (m *modelLedger) CompleteUntil(context.Context) (latest time.Time, err error) {
	for _, until := range m.until {
		if until.After(latest) {
			latest = until
		}
	}
	return latest, nil
}

func (m *modelLedger) StartRun(_ context.Context, run billing.Run) error {
	m.until[run.ID] = run.CompleteUntil
	return nil
}

func (m *modelLedger) MoveWatermark(_ context.Context, id string, until time.Time) error {
	m.until[id] = until
	return nil
}

func (m *modelLedger) OpenPeriods(context.Context) (open []billing.Open, err error) {
	for _, p := range m.periods() {
		if p.ValidTo.IsZero() {
			open = append(open, billing.Open{Namespace: p.Namespace, NamespaceUID: p.NamespaceUID, Tenant: p.Tenant, TenantUID: p.TenantUID,
				Generation: p.Generation, CostCenter: p.CostCenter, ContentHash: p.ContentHash, ValidFrom: p.ValidFrom})
		}
	}
	return open, nil
}

// periods returns what the view has for these events: a SET begins a period if it changes anything, an END ends it if it names its holder.
func (m *modelLedger) periods() (all []ledgertest.Period) {
	events := slices.Collect(maps.Values(m.events))
	slices.SortFunc(events, func(a, b billing.Event) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), a.EffectiveAt.Compare(b.EffectiveAt), cmp.Compare(a.Generation, b.Generation),
			cmp.Compare(a.ID, b.ID))
	})
	var last *ledgertest.Period
	for _, e := range events {
		if last != nil && last.Namespace != e.Namespace {
			last = nil
		}
		open := last != nil && last.ValidTo.IsZero()
		same := open && last.TenantUID == e.TenantUID && last.NamespaceUID == e.NamespaceUID
		differs := e.Op == billing.Set && (!same || last.ContentHash != e.ContentHash)
		if e.Op == billing.End && same || open && differs {
			last.ValidTo = e.EffectiveAt
		}
		if differs {
			all = append(all, ledgertest.Period{Namespace: e.Namespace, NamespaceUID: e.NamespaceUID, Tenant: e.Tenant, TenantUID: e.TenantUID,
				Generation: e.Generation, CostCenter: e.CostCenter, ContentHash: e.ContentHash, ValidFrom: e.EffectiveAt})
			last = &all[len(all)-1]
		}
	}
	return slices.DeleteFunc(all, func(p ledgertest.Period) bool { return p.ValidTo.Equal(p.ValidFrom) })
}
