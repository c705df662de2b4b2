package billing

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Copied counts what CopyFrom has found and done.
type Copied struct {
	// Clusters are the clusters of the source, as the target calls them.
	Clusters []string
	// Rows are the source's events, each once. All of them are in the target now.
	Rows int64
	// Added are the rows that the target lacked, and Runs the runs of exporters that it lacked.
	Added, Runs int64
}

// CopyFrom copies all rows of another ledger, of any engine, and its runs with their watermarks. Rows that are there already stay, so
// it may be repeated. It refuses a target that differs: one that lacks rows of the source and has others of the same clusters. At the
// end it compares both ledgers again. The exporters of both ledgers must not run meanwhile.
//
// Rows of the cluster "local", which a ledger in SQLite has without billing.clusterID, get the target's cluster, and keep their event_id.
func (s *Store) CopyFrom(ctx context.Context, from *Store) (c Copied, err error) {
	names, err := from.nameClusters(ctx, s.options.Cluster)
	if err != nil {
		return c, err
	}
	c.Clusters = slices.Sorted(maps.Values(names))
	before, err := s.compareWith(ctx, from, names)
	if err == nil {
		err = before.check()
	}
	if err != nil {
		return c, err
	}
	if before.missing > 0 {
		if c.Added, err = s.appendRows(ctx, from.allRows(ctx, names)); err != nil {
			return c, err
		}
	}
	// The watermark comes last: it says that all before it is in the ledger.
	if c.Runs, err = s.copyRuns(ctx, from, names); err != nil {
		return c, err
	}
	after, err := s.compareWith(ctx, from, names)
	if err == nil && after.missing > 0 {
		err = fmt.Errorf("%s has %d rows that %s lacks after the copy: stop the exporter that writes them, and copy again",
			from.options.Table, after.missing, s.options.Table)
	}
	c.Rows = after.rows
	return c, err
}

// nameClusters returns the clusters of the ledger, with the names that they have in a target whose own cluster is own. Only "local" gets
// another name, unless the ledger has rows of own as well. If the ledger has rows, and none of own, that is an error: an exporter of
// the target would begin anew.
func (s *Store) nameClusters(ctx context.Context, own string) (map[string]string, error) {
	clusters, err := collectAll(readRows(ctx, s, "the clusters", s.text.clusters, scanText))
	if err != nil {
		return nil, s.Explain(err)
	}
	names := map[string]string{}
	for _, cluster := range clusters {
		names[cluster] = cluster
	}
	if names[Unnamed] != "" && names[own] == "" {
		names[Unnamed] = own
	} else if len(names) > 0 && names[own] == "" {
		return nil, fmt.Errorf("%s has rows of cluster %s, and none of %s: set billing.clusterID to the cluster that the ledger has",
			s.options.Table, strings.Join(clusters, ", "), own)
	}
	return names, nil
}

// comparison is how the rows of a source and a target differ.
type comparison struct {
	// rows are those of the source, missing those of them that the target lacks, extra those of the source's clusters that only the
	// target has.
	rows, missing, extra int64
	// anExtra and aChanged are the event_id of a row that only the target has, and of one that has other values there; "" if there is none.
	anExtra, aChanged string
}

// check returns an error if a copy would mix two histories.
func (c comparison) check() error {
	switch {
	case c.aChanged != "":
		return fmt.Errorf("row %s has other values in the target: find out which are right, and change or delete the other row", c.aChanged)
	case c.missing > 0 && c.extra > 0:
		return fmt.Errorf("the target lacks %d rows, and has %d of the same cluster that the source lacks, such as %s: "+
			"an exporter has written there; stop it, copy into an empty billing.table, or delete these rows first", c.missing, c.extra, c.anExtra)
	}
	return nil
}

// compareWith walks through both ledgers once, in the order of event_id.
func (s *Store) compareWith(ctx context.Context, from *Store, names map[string]string) (c comparison, err error) {
	copied := map[string]bool{}
	for _, name := range names {
		copied[name] = true
	}
	target := newWalk(s.allRows(ctx, nil))
	defer target.stop()
	skipExtras := func(until string, all bool) {
		for target.valid && (all || target.row.ID < until) {
			if copied[target.row.Cluster] {
				c.extra, c.anExtra = c.extra+1, target.row.ID
			}
			target.next()
		}
	}
	for row, err := range from.allRows(ctx, names) {
		if err != nil {
			return c, err
		}
		c.rows++
		skipExtras(row.ID, false)
		switch {
		case !target.valid || target.row.ID != row.ID:
			c.missing++
			continue
		case target.row != row:
			c.aChanged = row.ID
		}
		target.next()
	}
	skipExtras("", true)
	return c, target.err
}

// copyRuns adds the runs that the target lacks, and moves watermarks that are behind the source's.
func (s *Store) copyRuns(ctx context.Context, from *Store, names map[string]string) (added int64, err error) {
	there := map[string]Run{}
	for run, err := range s.allRuns(ctx) {
		if err != nil {
			return added, s.Explain(err)
		}
		there[run.ID] = run.Run
	}
	for run, err := range from.allRuns(ctx) {
		if err != nil {
			return added, from.Explain(err)
		}
		old, found := there[run.ID]
		switch {
		case !found:
			run.cluster = cmp.Or(names[run.cluster], run.cluster)
			err, added = s.writeRun(ctx, run.cluster, run.Run), added+1
		case old.CompleteUntil.Before(run.CompleteUntil):
			err = s.MoveWatermark(ctx, run.ID, run.CompleteUntil)
		}
		if err != nil {
			return added, s.Explain(err)
		}
	}
	return added, nil
}
