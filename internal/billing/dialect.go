package billing

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Dialect is the text of one engine. In all of it {{t}} stands for the table and {{p1}}, {{p2}} for the parameters.
type Dialect struct {
	// Name is the configuration's word for the engine.
	Name string

	// table creates the table unless it is there.
	table string

	// insert takes a JSON array of events as its one parameter; a row whose event_id is there already is left out.
	insert string

	// columns takes the name of a table or view; it gives name and type of its columns, and 1 where a row must state
	// the column.
	columns string

	// types are those of the columns, by name.
	types map[string]string

	// list is the SQL for the elements of the JSON array in {{p2}}, to stand after IN.
	list string

	// placeholders for the first parameter and the second.
	placeholders [2]string

	// longestName is the most bytes that a name may have; 0: as the configuration says.
	longestName int

	// trouble says what an error of the driver means for the events at hand.
	trouble func(error) Trouble
}

const periodsSuffix = "_periods"

// eventColumns are the columns of the table in the order in which they are written.
var eventColumns = []string{"event_id", "cluster", "namespace", "namespace_uid", "tenant", "tenant_uid", "generation", "op",
	"cost_center", "owner", "labels", "content_hash", "effective_at", "recorded_at"}

// periodColumns are those of the view.
var periodColumns = []string{"cluster", "namespace", "namespace_uid", "tenant", "tenant_uid", "generation", "cost_center", "owner",
	"labels", "content_hash", "valid_from", "valid_to", "recorded_at", "event_id"}

// viewText is one for all engines. A row that is there twice counts once; a late row sorts itself in by effective_at. An era
// is a SET and what comes up to the next one: an END counts only for the tenant that holds the namespace, its holder, and only
// then repeats vanish, so that an END that doesn't count hides nothing.
const viewText = `CREATE VIEW {{t}}_periods AS
WITH dedup AS (
  SELECT e.*, ROW_NUMBER() OVER (PARTITION BY event_id ORDER BY recorded_at) AS rn FROM {{t}} AS e
), eras AS (
  SELECT d.*, SUM(CASE WHEN op = 'SET' THEN 1 ELSE 0 END) OVER (PARTITION BY cluster, namespace
         ORDER BY effective_at, generation, recorded_at, event_id) AS era FROM dedup AS d WHERE rn = 1
), held AS (
  SELECT r.*, FIRST_VALUE(tenant_uid) OVER (PARTITION BY cluster, namespace, era
         ORDER BY effective_at, generation, recorded_at, event_id) AS holder FROM eras AS r WHERE era > 0
), ordered AS (
  SELECT h.*, LAG(op) OVER w AS prev_op, LAG(tenant_uid) OVER w AS prev_uid, LAG(content_hash) OVER w AS prev_hash
  FROM held AS h WHERE tenant_uid = holder
  WINDOW w AS (PARTITION BY cluster, namespace ORDER BY effective_at, generation, recorded_at, event_id)
), kept AS (
  SELECT * FROM ordered
  WHERE (op = 'SET' AND (prev_op IS NULL OR prev_op <> 'SET' OR prev_uid <> tenant_uid OR prev_hash <> content_hash))
     OR (op = 'END' AND prev_op = 'SET')
), periods AS (
  SELECT k.*, LEAD(effective_at) OVER (PARTITION BY cluster, namespace
         ORDER BY effective_at, generation, recorded_at, event_id) AS valid_to FROM kept AS k
)
SELECT cluster, namespace, namespace_uid, tenant, tenant_uid, generation, cost_center, owner, labels, content_hash,
       effective_at AS valid_from, valid_to, recorded_at, event_id
FROM periods WHERE op = 'SET' AND (valid_to IS NULL OR valid_to > effective_at)`

// The questions, one text for all engines too.
const (
	openText = `SELECT namespace, namespace_uid, tenant, tenant_uid, generation, content_hash, valid_from
FROM {{t}}_periods WHERE cluster = {{p1}} AND valid_to IS NULL`

	latestText = `SELECT namespace, tenant_uid, op, MAX(effective_at) FROM {{t}}
WHERE cluster = {{p1}} AND namespace IN ({{list}}) GROUP BY namespace, tenant_uid, op`

	periodText = `SELECT cluster, namespace, namespace_uid, tenant, tenant_uid, generation, cost_center, owner, labels, content_hash,
       valid_from, valid_to, recorded_at, event_id
FROM {{t}}_periods WHERE cluster = {{p1}}`

	historyText = periodText + ` AND tenant = {{p2}} ORDER BY valid_from, namespace`
	exportText  = periodText + ` ORDER BY namespace, valid_from`
)

// tableName is what needs no quotes in any engine, so long as it is none of its words.
var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// statements are a dialect's texts for one table.
type statements struct {
	table, view, insert, columns, open, latest, history, export string
}

func (d Dialect) statements(table string) (statements, error) {
	if !tableName.MatchString(table) {
		return statements{}, fmt.Errorf("billing table %q: a name is letters, digits and _, at most 63, and starts with no digit", table)
	}
	if longest := d.longestName - len(periodsSuffix); d.longestName > 0 && len(table) > longest {
		return statements{}, fmt.Errorf("billing table %q: with %s a name has at most %d letters, for the view's has %d more", table, d.Name,
			longest, len(periodsSuffix))
	}
	fill := strings.NewReplacer("{{t}}", table, "{{list}}", strings.ReplaceAll(d.list, "{{p2}}", d.placeholders[1]),
		"{{p1}}", d.placeholders[0], "{{p2}}", d.placeholders[1]).Replace
	return statements{table: fill(d.table), view: fill(viewText), insert: fill(d.insert), columns: fill(d.columns), open: fill(openText),
		latest: fill(latestText), history: fill(historyText), export: fill(exportText)}, nil
}

// DDL is what an administrator runs where the operator may not: the table, then the view.
func (d Dialect) DDL(table string) ([]string, error) {
	text, err := d.statements(table)
	if err != nil {
		return nil, err
	}
	return []string{text.table, text.view}, nil
}

// each writes the columns that an event states, all but recorded_at, in a form.
func each(form func(column string) string) string {
	stated := slices.DeleteFunc(slices.Clone(eventColumns), func(c string) bool { return c == "recorded_at" })
	for i, column := range stated {
		stated[i] = form(column)
	}
	return strings.Join(stated, ", ")
}
