package billing

import (
	"context"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/warren-tenancy/warren/internal/text"
)

// Period is one row of the view of periods: from ValidFrom, inclusive, to ValidTo, exclusive, the tenant held the namespace and was
// billed with these values.
type Period struct {
	Cluster, Namespace, NamespaceUID, Tenant, TenantUID string
	Generation                                          int64
	CostCenter, Owner                                   string
	Labels                                              map[string]string
	ContentHash                                         string
	ValidFrom                                           time.Time
	// ValidTo is zero while the period lasts.
	ValidTo time.Time
	// RecordedAt is when the period's first event reached the warehouse, by the warehouse's clock.
	RecordedAt time.Time
	EventID    string
}

// History returns all periods of the cluster that a tenant of this name had, in order of their beginning.
func (s *Store) History(ctx context.Context, tenant string) ([]Period, error) {
	return collectAll(s.periods(ctx, "the history", s.text.history, s.options.Cluster, cleanText(tenant)))
}

// Holders returns who held which namespace of the cluster at an instant, by namespace.
func (s *Store) Holders(ctx context.Context, at time.Time) ([]Period, error) {
	return collectAll(s.periods(ctx, "the holders", s.text.holders, s.options.Cluster, instantText(at), instantText(at)))
}

// All streams every period of the cluster, by namespace and beginning.
func (s *Store) All(ctx context.Context) iter.Seq2[Period, error] {
	return s.periods(ctx, "all periods", s.text.export, s.options.Cluster)
}

// Export writes all periods of the cluster as CSV (RFC 4180, LF): a header with the view's columns, labels as JSON, times in RFC
// 3339, an empty valid_to while a period lasts, and an apostrophe before text that a spreadsheet would compute.
func (s *Store) Export(ctx context.Context, to io.Writer) error {
	out := csv.NewWriter(to)
	if err := out.Write(periodColumns); err != nil {
		return fmt.Errorf("exporting %s: %w", s.options.Table, err)
	}
	for p, err := range s.periods(ctx, "all periods", s.text.export, s.options.Cluster) {
		if err != nil {
			return err
		}
		record, err := p.Record()
		if err != nil {
			return err
		}
		if err := out.Write(text.DisarmFormulas(record)); err != nil {
			return fmt.Errorf("exporting %s: %w", s.options.Table, err)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("exporting %s: %w", s.options.Table, err)
	}
	return nil
}

// PeriodColumns returns the column names of the view of periods.
func PeriodColumns() []string { return slices.Clone(periodColumns) }

// Record returns the period as text, a field for each of PeriodColumns: labels as JSON, times in RFC 3339, an empty valid_to while
// the period lasts.
func (p Period) Record() ([]string, error) {
	labels, err := json.Marshal(p.Labels)
	if err != nil {
		return nil, fmt.Errorf("writing the labels of %s as JSON: %w", p.Namespace, err)
	}
	until := ""
	if !p.ValidTo.IsZero() {
		until = instantText(p.ValidTo)
	}
	return []string{p.Cluster, p.Namespace, p.NamespaceUID, p.Tenant, p.TenantUID, strconv.FormatInt(p.Generation, 10), p.CostCenter,
		p.Owner, string(labels), p.ContentHash, instantText(p.ValidFrom), until, instantText(p.RecordedAt), p.EventID}, nil
}

func (s *Store) periods(ctx context.Context, what, query string, args ...any) iter.Seq2[Period, error] {
	return readRows(ctx, s, what, query, func(rows *sql.Rows) (p Period, err error) {
		var labels string
		var from, until, recorded instant
		err = rows.Scan(&p.Cluster, &p.Namespace, &p.NamespaceUID, &p.Tenant, &p.TenantUID, &p.Generation, &p.CostCenter, &p.Owner,
			&labels, &p.ContentHash, &from, &until, &recorded, &p.EventID)
		if err != nil {
			return p, err
		}
		p.ValidFrom, p.ValidTo, p.RecordedAt = from.Time, until.Time, recorded.Time
		if err := json.Unmarshal([]byte(labels), &p.Labels); err != nil {
			return p, fmt.Errorf("labels of event %s: %w", p.EventID, err)
		}
		return p, nil
	}, args...)
}
