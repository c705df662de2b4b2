// Package ledger reads the periods of a billing ledger by SQL, for tests.
package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"
)

// Period is one row of the view of periods.
type Period struct {
	Cluster, Namespace, NamespaceUID, Tenant, TenantUID string
	Generation                                          int64
	CostCenter, Owner                                   string
	Labels                                              map[string]string
	ContentHash                                         string
	ValidFrom                                           time.Time
	// ValidTo is zero while the period lasts.
	ValidTo, RecordedAt time.Time
	EventID             string
}

// Periods returns the periods of a table that meet an SQL condition, by namespace and beginning. An empty condition selects all.
func Periods(ctx context.Context, db *sql.DB, table, where string) (all []Period, err error) {
	rows, err := db.QueryContext(ctx, `SELECT cluster, namespace, namespace_uid, tenant, tenant_uid, generation, cost_center, owner, labels,
content_hash, valid_from, valid_to, recorded_at, event_id FROM `+table+`_periods WHERE `+cmp.Or(where, "1 = 1")+
		` ORDER BY namespace, valid_from`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var p Period
		var labels string
		if err := rows.Scan(&p.Cluster, &p.Namespace, &p.NamespaceUID, &p.Tenant, &p.TenantUID, &p.Generation, &p.CostCenter, &p.Owner,
			&labels, &p.ContentHash, instant{&p.ValidFrom}, instant{&p.ValidTo}, instant{&p.RecordedAt}, &p.EventID); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(labels), &p.Labels); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, rows.Err()
}

// Overlap returns the first two periods of one namespace that overlap, or a period that ends before it begins; "" if there are none.
func Overlap(all []Period) string {
	for i, p := range all {
		if !p.ValidTo.IsZero() && !p.ValidTo.After(p.ValidFrom) {
			return fmt.Sprintf("%+v ends before it begins", p)
		}
		if i > 0 && all[i-1].Namespace == p.Namespace && (all[i-1].ValidTo.IsZero() || all[i-1].ValidTo.After(p.ValidFrom)) {
			return fmt.Sprintf("%+v overlaps %+v", all[i-1], p)
		}
	}
	return ""
}

// instant scans a time: drivers return a time.Time, or text in RFC 3339. NULL becomes the zero time.
type instant struct{ to *time.Time }

// Scan implements sql.Scanner.
func (i instant) Scan(value any) (err error) {
	switch v := value.(type) {
	case nil:
		*i.to = time.Time{}
	case time.Time:
		*i.to = v.UTC()
	case string:
		*i.to, err = time.Parse(time.RFC3339Nano, v)
	default:
		err = fmt.Errorf("a %T is no time", value)
	}
	return err
}
