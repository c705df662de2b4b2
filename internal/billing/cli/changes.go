package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/exporter"
)

// correct appends a correction and prints the tenant's history.
func correct(ctx context.Context, c *call) error {
	correction := billing.Correction{Tenant: c.words[0], Until: time.Now(), Author: c.author, Reason: c.reason}
	var err error
	if correction.From, err = instant("--from", c.from); err != nil {
		return err
	}
	if c.until != "" {
		if correction.Until, err = instant("--until", c.until); err != nil {
			return err
		}
	}
	if c.costCenterSet {
		correction.CostCenter = &c.costCenter
	}
	if c.ownerSet {
		correction.Owner = &c.owner
	}
	if _, err := c.store.Correct(ctx, correction); err != nil {
		return err
	}
	return history(ctx, c)
}

// reconcile compares cluster and ledger once. The exporter does so by itself, at its start and every resyncInterval.
func reconcile(ctx context.Context, c *call) error {
	plan, err := exporter.Compare(ctx, c.config, c.store)
	if err != nil {
		return err
	}
	t := table{columns: []string{"op", "namespace", "tenant", "cost_center", "effective_at", "note"}}
	for _, e := range plan.Events() {
		t.add(string(e.Op), e.Namespace, e.Tenant, e.CostCenter, text(e.EffectiveAt), "")
	}
	for _, e := range plan.Held {
		t.add(string(e.Op), e.Namespace, e.Tenant, e.CostCenter, text(e.EffectiveAt), "held back: too many ends at once")
	}
	if !c.dryRun {
		if _, err := c.store.Append(ctx, plan.Events()); err != nil {
			return err
		}
	}
	if len(t.rows) == 0 && c.format == "table" {
		_, err := fmt.Fprintln(c.out, "Cluster and ledger say the same.")
		return err
	}
	return t.write(c.out, c.format)
}
