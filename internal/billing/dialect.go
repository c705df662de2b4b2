package billing

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Dialect holds the SQL texts of one database engine. In them, {{t}} stands for the table's name with its prefix, {{d}}
// for the prefix alone, and {{p1}}, {{p2}} and so on for the parameters.
type Dialect struct {
	// Name is the configuration's word for the engine.
	Name string

	// prefix stands before each table's name, such as project and dataset in BigQuery; empty for most engines.
	prefix string

	// table creates the table unless it exists; index and runs create the table's index and the table of runs. An
	// engine without indexes has an empty index.
	table, index, runs string

	// dropView runs before the view's text, in an engine that can't replace a view; createView begins that text. An
	// engine that drops the comment in the view's text records the view's version by describeView, or by viewOptions
	// within the text. {{v}} stands for the view, {{version}} for its version. All but createView may be empty.
	dropView, createView, viewOptions, describeView string

	// viewVersion is a query that takes the view's name and returns a text with viewMark and the version's number in
	// it.
	viewVersion string

	// instant is the form of a parameter that is a time, with {{p}} for the parameter; now is the engine's own clock.
	instant, now string

	// insert takes a JSON array of events, and leaves out each event whose event_id is in the table already. With
	// insertBounds, it also takes the least and the greatest effective_at of the events. The engine then searches for
	// existing rows only between these times.
	insert       string
	insertBounds bool

	// copyRows is insert for rows that keep their recorded_at. byID orders event_id by its bytes, as Go does.
	copyRows, byID string

	// columns is a query that takes the name of a table or view. For each column it returns the name, the type, and 1
	// if an INSERT must state the column, else 0.
	columns string

	// types are the types of the events' columns, by the column's name, as the columns query returns them.
	types map[string]string

	// ordered reads a cluster's events in the view's order, for an embedded engine, in which one pass through all
	// events costs less than a query of the view. Empty means that the view is queried.
	ordered string

	// list is the SQL for the elements of the JSON array in {{p2}}, as IN takes them.
	list string

	// placeholder returns the text for the n-th parameter; n counts from 1.
	placeholder func(n int) string

	// watermarkEvery is the least time between two moves of the watermark, for an engine in which an UPDATE costs much;
	// 0 means no limit.
	watermarkEvery time.Duration

	// longestName is how many bytes a name may have; 0 means no limit besides tableName's.
	longestName int

	// trouble returns the class of an error of the driver.
	trouble func(error) Trouble

	// refusedWrite reports whether an error of the driver says that a database that is open for reading alone would be changed.
	refusedWrite func(error) bool

	// advice returns what to do about an error of the driver; "" where the error's own message suffices. The function
	// may be nil.
	advice func(error) string
}

// The suffixes of the names of the view, tables and index that belong to a table. None is longer than periodsSuffix, so
// statements checks only that the table's name leaves room for periodsSuffix.
const (
	periodsSuffix = "_periods"
	runsSuffix    = "_runs"
	indexSuffix   = "_places"
)

// viewVersion is the version of viewText; each released change of the text increases it. Ensure replaces a view of a
// lower version, and leaves a view of a higher version, which a newer exporter has made.
const viewVersion = 2

// viewMark is the text before the version in a view's comment or description.
const viewMark = "warren billing view "

// eventColumns are the columns of the table in the order in which they are written.
var eventColumns = []string{"event_id", "cluster", "namespace", "namespace_uid", "tenant", "tenant_uid", "generation", "op",
	"cost_center", "owner", "labels", "content_hash", "effective_at", "recorded_at"}

// periodColumns are the columns of the view.
var periodColumns = []string{"cluster", "namespace", "namespace_uid", "tenant", "tenant_uid", "generation", "cost_center", "owner",
	"labels", "content_hash", "valid_from", "valid_to", "recorded_at", "event_id"}

// viewText is the view's text for all engines. A row that is stored twice counts once; a late row is sorted in by
// effective_at. An era is a SET and the rows up to the next SET. An END has an effect only if it names the era's
// holder: the tenant UID and namespace UID of that SET. Repeated SETs are dropped after that, so that an END without
// effect hides no SET. All windows are partitioned by cluster and namespace first. So for a query that names a
// namespace, the engines read only the rows of that namespace.
const viewText = `{{v}}{{viewOptions}} AS /* ` + viewMark + `{{version}} */
WITH dedup AS (
  SELECT e.*, ROW_NUMBER() OVER (PARTITION BY cluster, namespace, event_id ORDER BY recorded_at) AS rn FROM {{t}} AS e
), eras AS (
  SELECT d.*, SUM(CASE WHEN op = 'SET' THEN 1 ELSE 0 END) OVER (PARTITION BY cluster, namespace
         ORDER BY effective_at, generation, recorded_at, event_id) AS era FROM dedup AS d WHERE rn = 1
), held AS (
  SELECT r.*, FIRST_VALUE(tenant_uid) OVER (PARTITION BY cluster, namespace, era
         ORDER BY effective_at, generation, recorded_at, event_id) AS holder,
         FIRST_VALUE(namespace_uid) OVER (PARTITION BY cluster, namespace, era
         ORDER BY effective_at, generation, recorded_at, event_id) AS held_uid FROM eras AS r WHERE era > 0
), ordered AS (
  SELECT h.*, LAG(op) OVER w AS prev_op, LAG(tenant_uid) OVER w AS prev_uid, LAG(namespace_uid) OVER w AS prev_namespace,
         LAG(content_hash) OVER w AS prev_hash
  FROM held AS h WHERE tenant_uid = holder AND namespace_uid = held_uid
  WINDOW w AS (PARTITION BY cluster, namespace ORDER BY effective_at, generation, recorded_at, event_id)
), kept AS (
  SELECT * FROM ordered
  WHERE (op = 'SET' AND (prev_op IS NULL OR prev_op <> 'SET' OR prev_uid <> tenant_uid
         OR prev_namespace <> namespace_uid OR prev_hash <> content_hash))
     OR (op = 'END' AND prev_op = 'SET')
), periods AS (
  SELECT k.*, LEAD(effective_at) OVER (PARTITION BY cluster, namespace
         ORDER BY effective_at, generation, recorded_at, event_id) AS valid_to FROM kept AS k
)
SELECT cluster, namespace, namespace_uid, tenant, tenant_uid, generation, cost_center, owner, labels, content_hash,
       effective_at AS valid_from, valid_to, recorded_at, event_id
FROM periods WHERE op = 'SET' AND (valid_to IS NULL OR valid_to > effective_at)`

// tableName matches names that need no quotes in any engine, except its reserved words.
var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// statements are a dialect's texts for one table.
type statements struct {
	table, index, runs, dropView, view, describeView    string
	insert, columns, viewVersion, open, ordered, latest string
	startRun, moveWatermark, recentRuns                 string
	copyRows, allRows, clusters, allRuns                string
}

func (d Dialect) buildStatements(table string) (statements, error) {
	if !tableName.MatchString(table) {
		return statements{}, fmt.Errorf("billing table %q: a name is letters, digits and _, at most 63, and starts with no digit", table)
	}
	if longest := d.longestName - len(periodsSuffix); d.longestName > 0 && len(table) > longest {
		return statements{}, fmt.Errorf("billing table %q: with %s a name has at most %d characters, because its view's name has %d more",
			table, d.Name,
			longest, len(periodsSuffix))
	}
	fill := d.newFiller(table)
	periods := func(text string) string {
		return fill(strings.NewReplacer("{{v}}", "{{t}}"+periodsSuffix, "{{version}}", strconv.Itoa(viewVersion)).Replace(text))
	}
	return statements{
		table: fill(d.table), index: fill(d.index), runs: fill(d.runs), dropView: periods(d.dropView),
		view: periods(d.createView + strings.ReplaceAll(viewText, "{{viewOptions}}", d.viewOptions)), describeView: periods(d.describeView),
		insert: fill(d.insert), columns: fill(d.columns),
		viewVersion: fill(d.viewVersion), open: fill(openText), ordered: fill(d.ordered), latest: fill(latestText),
		copyRows: fill(d.copyRows), clusters: fill(clustersText), allRuns: fill(allRunsText),
		allRows:  fill("SELECT " + strings.Join(eventColumns, ", ") + " FROM {{t}} ORDER BY " + d.byID + ", recorded_at"),
		startRun: fill(startRunText), moveWatermark: fill(watermarkText), recentRuns: fill(recentRunsText),
	}, nil
}

// newFiller returns a function that replaces the {{ }} in a text, for this table: the names, the engine's clock and
// list, the placeholders {{p1}} to {{p6}} and, for parameters that are times, {{i1}} to {{i6}}.
func (d Dialect) newFiller(table string) func(string) string {
	pairs := []string{"{{t}}", d.prefix + table, "{{d}}", d.prefix, "{{now}}", d.now, "{{list}}",
		strings.ReplaceAll(d.list, "{{p2}}", d.placeholder(2))}
	for n := 1; n <= 6; n++ {
		p := d.placeholder(n)
		pairs = append(pairs, fmt.Sprintf("{{p%d}}", n), p, fmt.Sprintf("{{i%d}}", n), strings.ReplaceAll(d.instant, "{{p}}", p))
	}
	return strings.NewReplacer(pairs...).Replace
}

// DDL returns the statements that an administrator runs where the exporter may not create tables. They make the table,
// the view with its version, the index, and the table of runs.
func (d Dialect) DDL(table string) ([]string, error) {
	text, err := d.buildStatements(table)
	if err != nil {
		return nil, err
	}
	return presentTexts(text.table, text.view, text.describeView, text.index, text.runs), nil
}

// presentTexts returns the texts that aren't empty.
func presentTexts(texts ...string) []string {
	return slices.DeleteFunc(texts, func(s string) bool { return s == "" })
}

// listColumns returns the columns of an event except recorded_at, each in the given form, separated by commas.
func listColumns(form func(column string) string) string {
	stated := slices.DeleteFunc(slices.Clone(eventColumns), func(c string) bool { return c == "recorded_at" })
	for i, column := range stated {
		stated[i] = form(column)
	}
	return strings.Join(stated, ", ")
}
