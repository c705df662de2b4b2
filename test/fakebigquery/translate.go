package fakebigquery

import (
	"database/sql/driver"
	"fmt"
	"regexp"
	"strings"
	"time"

	"modernc.org/sqlite"
)

// foreign are words of other engines. BigQuery would refuse them.
var foreign = regexp.MustCompile(
	`(?i)\bON CONFLICT\b|::|->|\bjson_each\b|\bjsonb|\bstrftime\b|\bpragma_|\bsqlite_master\b|\bto_regclass\b|\bjulianday\b|\$\d|` +
		`\bTEXT\b|\bSTRICT\b|\bWITHOUT ROWID\b|\bCREATE (UNIQUE )?INDEX\b|\bRETURNING\b`)

// columnsOf is the query that replaces INFORMATION_SCHEMA.COLUMNS.
const columnsOf = `(SELECT m.name AS table_name, p.name AS column_name, replace(p.type, '_TEXT', '') AS data_type,
CASE p."notnull" WHEN 1 THEN 'NO' ELSE 'YES' END AS is_nullable, coalesce(p.dflt_value, 'NULL') AS column_default,
p.cid + 1 AS ordinal_position
FROM sqlite_master AS m, pragma_table_info(m.name) AS p WHERE m.name <> 'options')`

// words are parts of GoogleSQL, and what they are in SQLite. The order matters.
var words = []struct {
	pattern *regexp.Regexp
	means   string
}{
	{regexp.MustCompile("`" + Project + "`\\.`" + Dataset + "`\\."), ""},
	{regexp.MustCompile(`\b` + Dataset + `\.`), ""},
	{regexp.MustCompile(`\bINFORMATION_SCHEMA\.COLUMNS\b`), columnsOf},
	{regexp.MustCompile(`\bINFORMATION_SCHEMA\.TABLE_OPTIONS\b`), "options"},
	{regexp.MustCompile(`\bJSON_VALUE\((\w+), '\$\.(\w+)'\)`), "$1.value ->> '$2'"},
	{regexp.MustCompile(`\bJSON_QUERY\((\w+), '\$\.(\w+)'\)`), "$1.value -> '$2'"},
	{regexp.MustCompile(`\bJSON_VALUE\((\w+)\)`), "$1.value"},
	{regexp.MustCompile(`\bUNNEST\(JSON_QUERY_ARRAY\(\?\)\)`), "json_each(?)"},
	{regexp.MustCompile(`\bPARSE_JSON\(`), "json("},
	{regexp.MustCompile(`\bJSON '`), "'"},
	{regexp.MustCompile(`\bTIMESTAMP '([^']*)'`), "timestamp_of('$1')"},
	{regexp.MustCompile(`\bTIMESTAMP\(`), "timestamp_of("},
	{regexp.MustCompile(`\bCURRENT_TIMESTAMP\(\)`), "current_instant()"},
	{regexp.MustCompile(`, SECOND\)`), ", 'SECOND')"},
	{regexp.MustCompile(`\bLEAST\(`), "min("},
	{regexp.MustCompile(`\bGREATEST\(`), "max("},
	{regexp.MustCompile(`\b(STRING|JSON|TIMESTAMP)\b( NOT NULL|,|\)| DEFAULT|$)`), "${1}_TEXT$2"},
}

var (
	tableOf = regexp.MustCompile(`^CREATE TABLE (?:IF NOT EXISTS )?(\w+)`)
	storage = regexp.MustCompile(`(?s)\n?(PARTITION BY TIMESTAMP_TRUNC|CLUSTER BY|OPTIONS \().*$`)
	viewOf  = regexp.MustCompile(`(?s)^CREATE (OR REPLACE )?VIEW (\w+)(?:\s+OPTIONS \(description = '([^']*)'\))?\s+AS\s(.*)$`)
)

// translate returns the statement in SQLite's SQL, as one or more statements.
func translate(text string) ([]string, *apiError) {
	if word := foreign.FindString(text); word != "" {
		return nil, invalidQuery(fmt.Sprintf("Syntax error: Unexpected %q", word))
	}
	for _, w := range words {
		text = w.pattern.ReplaceAllString(text, w.means)
	}
	if table := tableOf.FindStringSubmatch(text); table != nil {
		steps := []string{storage.ReplaceAllString(text, "")}
		if strings.Contains(text, "(event_id ") { // BigQuery needs no index; without one, a test would be slow
			steps = append(steps, "CREATE INDEX IF NOT EXISTS "+table[1]+"_ids ON "+table[1]+" (event_id)")
		}
		return steps, nil
	}
	if name, dropped := strings.CutPrefix(text, "DROP VIEW "); dropped {
		return []string{"DELETE FROM options WHERE table_name = '" + strings.TrimPrefix(name, "IF EXISTS ") + "'", text}, nil
	}
	view := viewOf.FindStringSubmatch(text)
	if view == nil {
		return []string{text}, nil
	}
	replace, name, description, body := view[1] != "", view[2], view[3], view[4]
	var steps []string
	if replace {
		steps = append(steps, "DROP VIEW IF EXISTS "+name)
	}
	steps = append(steps, "DELETE FROM options WHERE table_name = '"+name+"'")
	if description != "" {
		steps = append(steps, "INSERT INTO options VALUES ('"+name+"', 'description', '\""+description+"\"')")
	}
	return append(steps, "CREATE VIEW "+name+" AS "+body), nil
}

func init() {
	sqlite.MustRegisterScalarFunction("current_instant", 0, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
		return time.Now().UTC().Format(instant), nil
	})
	sqlite.MustRegisterDeterministicScalarFunction("timestamp_of", 1,
		func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			if args[0] == nil {
				return nil, nil
			}
			t, err := parseInstant(fmt.Sprint(args[0]))
			if err != nil {
				return nil, err
			}
			return t.UTC().Format(instant), nil
		})
	sqlite.MustRegisterDeterministicScalarFunction("timestamp_diff", 3,
		func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			a, err := parseInstant(fmt.Sprint(args[0]))
			if err != nil {
				return nil, err
			}
			b, err := parseInstant(fmt.Sprint(args[1]))
			if err != nil {
				return nil, err
			}
			return int64(a.Sub(b) / time.Second), nil
		})
}

func parseInstant(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateTime, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("Invalid timestamp: '%s'", text) //nolint:staticcheck // BigQuery's words
}
