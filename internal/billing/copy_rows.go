package billing

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"time"
)

// Unnamed is the cluster of a ledger in SQLite without billing.clusterID.
const Unnamed = "local"

// copiedRow is a row of the table as another ledger gets it. Two rows are equal if their values are, whatever their engines.
type copiedRow struct {
	ID           string `json:"event_id"`
	Cluster      string `json:"cluster"`
	Namespace    string `json:"namespace"`
	NamespaceUID string `json:"namespace_uid"`
	Tenant       string `json:"tenant"`
	TenantUID    string `json:"tenant_uid"`
	Generation   int64  `json:"generation"`
	Op           Op     `json:"op"`
	CostCenter   string `json:"cost_center"`
	Owner        string `json:"owner"`
	// Labels are JSON, with their keys in order.
	Labels      jsonText `json:"labels"`
	ContentHash string   `json:"content_hash"`
	EffectiveAt string   `json:"effective_at"`
	RecordedAt  string   `json:"recorded_at"`
}

// jsonText is JSON that is written as it is. A json.RawMessage can't be compared.
type jsonText string

// MarshalJSON implements json.Marshaler.
func (t jsonText) MarshalJSON() ([]byte, error) { return []byte(t), nil }

func scanCopiedRow(rows *sql.Rows) (r copiedRow, err error) {
	var labels string
	var effective, recorded instant
	if err := rows.Scan(&r.ID, &r.Cluster, &r.Namespace, &r.NamespaceUID, &r.Tenant, &r.TenantUID, &r.Generation, &r.Op, &r.CostCenter,
		&r.Owner, &labels, &r.ContentHash, &effective, &recorded); err != nil {
		return r, err
	}
	r.EffectiveAt, r.RecordedAt = instantText(effective.Time), instantText(recorded.Time)
	var parsed any
	if err := json.Unmarshal([]byte(labels), &parsed); err != nil {
		return r, fmt.Errorf("row %s has labels that are no JSON: %w", r.ID, err)
	}
	sorted, err := json.Marshal(parsed)
	r.Labels = jsonText(sorted)
	return r, err
}

func scanText(rows *sql.Rows) (text string, err error) {
	err = rows.Scan(&text)
	return text, err
}

// allRows streams the rows of all clusters in the order of event_id, each once, with their clusters renamed. Errors have advice.
func (s *Store) allRows(ctx context.Context, names map[string]string) iter.Seq2[copiedRow, error] {
	return func(yield func(copiedRow, error) bool) {
		last, begun := "", false
		for row, err := range readRows(ctx, s, "the rows", s.text.allRows, scanCopiedRow) {
			if err == nil && begun && row.ID == last { // BigQuery may hold a row twice
				continue
			}
			last, begun = row.ID, true
			if name := names[row.Cluster]; name != "" {
				row.Cluster = name
			}
			if !yield(row, s.Explain(err)) {
				return
			}
		}
	}
}

// appendRows stores rows in batches, with their recorded_at, and returns how many were new.
func (s *Store) appendRows(ctx context.Context, rows iter.Seq2[copiedRow, error]) (added int64, err error) {
	var b batch
	flush := func() error {
		n, err := s.insertBatch(ctx, s.text.copyRows, b)
		added, b = added+n, batch{}
		return s.Explain(err)
	}
	for row, err := range rows {
		if err != nil {
			return added, err
		}
		text, err := json.Marshal(row)
		if err != nil {
			return added, fmt.Errorf("writing row %s as JSON: %w", row.ID, err)
		}
		if b.isFull(text, s.options) {
			if err := flush(); err != nil {
				return added, err
			}
		}
		at, err := time.Parse(instantFormat, row.EffectiveAt)
		if err != nil {
			return added, fmt.Errorf("the time of row %s: %w", row.ID, err)
		}
		b.addRow(text, at)
	}
	return added, flush()
}

// walk reads rows one by one.
type walk struct {
	row   copiedRow
	valid bool
	err   error
	pull  func() (copiedRow, error, bool)
	stop  func()
}

func newWalk(rows iter.Seq2[copiedRow, error]) *walk {
	w := &walk{}
	w.pull, w.stop = iter.Pull2(rows)
	w.next()
	return w
}

func (w *walk) next() {
	row, err, more := w.pull()
	w.row, w.err, w.valid = row, err, more && err == nil
}

// namedRun is a run, and its cluster.
type namedRun struct {
	Run
	cluster string
}

func (s *Store) allRuns(ctx context.Context) iter.Seq2[namedRun, error] {
	return readRows(ctx, s, "the runs", s.text.allRuns, func(rows *sql.Rows) (r namedRun, err error) {
		var started, until instant
		err = rows.Scan(&r.ID, &r.cluster, &r.Exporter, &r.Version, &started, &until)
		r.StartedAt, r.CompleteUntil = started.Time, until.Time
		return r, err
	})
}
