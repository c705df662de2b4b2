package billing

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

var runColumns = []string{"run_id", "cluster", "exporter", "version", "started_at", "complete_until", "recorded_at"}

// Run is the time of one exporter as the leader. The table of runs distinguishes a ledger without changes from an
// exporter that died: all changes in the cluster until CompleteUntil are in the ledger.
type Run struct {
	// ID is unique; Exporter is the pod's name, Version the program's.
	ID, Exporter, Version string
	StartedAt             time.Time
	// CompleteUntil is the watermark: all changes before that time are in the ledger.
	CompleteUntil time.Time
}

// WatermarkInterval returns the least time that the engine needs between two moves of the watermark; 0 means no limit.
func (s *Store) WatermarkInterval() time.Duration { return s.dialect.watermarkEvery }

// StartRun writes the row of a run. Callers do so after the run's first comparison: before it, the ledger is not known
// to be complete.
func (s *Store) StartRun(ctx context.Context, r Run) error {
	return s.writeRun(ctx, s.options.Cluster, r)
}

func (s *Store) writeRun(ctx context.Context, cluster string, r Run) error {
	_, err := s.db.ExecContext(ctx, s.text.startRun, r.ID, cluster, cleanText(r.Exporter), cleanText(r.Version), instantText(r.StartedAt),
		instantText(r.CompleteUntil))
	return s.wrapRun("starting", err)
}

// MoveWatermark records that all changes in the cluster until that time are in the ledger.
func (s *Store) MoveWatermark(ctx context.Context, id string, until time.Time) error {
	_, err := s.db.ExecContext(ctx, s.text.moveWatermark, instantText(until), id)
	return s.wrapRun("moving the watermark of", err)
}

func (s *Store) wrapRun(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s a run in %s%s: %w", doing, s.options.Table, runsSuffix, err)
}

// Runs returns the latest runs of the cluster, the newest first, at most 20.
func (s *Store) Runs(ctx context.Context) ([]Run, error) {
	return collectAll(readRows(ctx, s, "the runs", s.text.recentRuns, func(rows *sql.Rows) (r Run, err error) {
		var started, until instant
		err = rows.Scan(&r.ID, &r.Exporter, &r.Version, &started, &until)
		r.StartedAt, r.CompleteUntil = started.Time, until.Time
		return r, err
	}, s.options.Cluster))
}

// CompleteUntil returns the cluster's latest watermark; the zero time if there is none.
func (s *Store) CompleteUntil(ctx context.Context) (latest time.Time, err error) {
	runs, err := s.Runs(ctx)
	for _, run := range runs {
		if run.CompleteUntil.After(latest) {
			latest = run.CompleteUntil
		}
	}
	return latest, err
}
