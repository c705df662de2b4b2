package cli

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/exporter"
)

// appendCorrection appends a correction and prints the tenant's history.
func appendCorrection(ctx context.Context, c *call) error {
	completeUntil, err := c.store.CompleteUntil(ctx)
	if err != nil {
		return err
	}
	correction, err := c.correction(time.Now(), completeUntil)
	if err != nil {
		return err
	}
	if _, err := c.store.Correct(ctx, correction); err != nil {
		return err
	}
	return printHistory(ctx, c)
}

// correction returns the correction that the flags describe, or an error that names the wrong or missing flag. The correction ends at
// completeUntil at the latest, if that is not zero. The event of a later change may still be on its way to the ledger, and would undo the
// correction from then on.
func (c *call) correction(now, completeUntil time.Time) (billing.Correction, error) {
	correction := billing.Correction{Tenant: c.word, Until: now, Author: c.flag("author"), Reason: c.flag("reason")}
	if !completeUntil.IsZero() && completeUntil.Before(now) {
		correction.Until = completeUntil
	}
	switch {
	case correction.Author == "":
		return correction, errors.New("--author is missing: name the person who makes the correction")
	case correction.Reason == "":
		return correction, errors.New("--reason is missing: write why the bill was wrong")
	case !c.flags.Changed("cost-center") && !c.flags.Changed("owner"):
		return correction, errors.New("--cost-center and --owner are missing: give what should have been billed, one or both")
	}
	var err error
	if correction.From, err = parseInstant("--from", c.flag("from")); err != nil {
		return correction, err
	}
	until := c.flag("until")
	if until != "" {
		if correction.Until, err = parseInstant("--until", until); err != nil {
			return correction, err
		}
	}
	if correction.Until.After(now) {
		return correction, fmt.Errorf("--until lies in the future: %s; for the time from now on, change spec.billing of LNamespace %s instead",
			until, c.word)
	}
	if !completeUntil.IsZero() && correction.Until.After(completeUntil) {
		return correction, fmt.Errorf("--until %s lies after %s, and the ledger is complete only until then: use that time, or wait for the "+
			"exporter",
			until, completeUntil.UTC().Format(time.RFC3339))
	}
	if correction.CostCenter, err = c.atMost("cost-center", 64); err != nil {
		return correction, err
	}
	correction.Owner, err = c.atMost("owner", 256)
	return correction, err
}

// atMost returns the value of a flag, nil where it isn't given, or an error if the value has more than most characters, the limit of that
// field in spec.billing of an LNamespace.
func (c *call) atMost(name string, most int) (*string, error) {
	if !c.flags.Changed(name) {
		return nil, nil
	}
	value := c.flag(name)
	if n := utf8.RuneCountInString(value); n > most {
		return nil, fmt.Errorf("--%s has %d characters, at most %d fit into spec.billing of an LNamespace: shorten it", name, n, most)
	}
	return &value, nil
}

// reconcileLedger compares cluster and ledger once, and appends the events that the ledger lacks, unless --dry-run is set. The exporter
// does so by itself, at its start and every resyncInterval.
func reconcileLedger(ctx context.Context, c *call) error {
	plan, err := exporter.Compare(ctx, c.config, c.store, c.flag("operator-namespace"))
	if err != nil {
		return err
	}
	t := table{columns: []string{"op", "namespace", "tenant", "cost_center", "effective_at", "note"}}
	for _, e := range plan.Events() {
		t.add(string(e.Op), e.Namespace, e.Tenant, e.CostCenter, stamp(e.EffectiveAt), "")
	}
	for _, e := range plan.Held {
		t.add(string(e.Op), e.Namespace, e.Tenant, e.CostCenter, stamp(e.EffectiveAt), "held back: too many periods end at once")
	}
	if c.flag("dry-run") != "true" {
		if _, err := c.store.Append(ctx, plan.Events()); err != nil {
			return err
		}
	}
	if len(t.rows) == 0 && c.format == "table" {
		_, err := fmt.Fprintln(c.out, "Cluster and ledger agree.")
		return err
	}
	return t.write(c.out, c.format)
}
