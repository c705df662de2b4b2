package billing

import (
	"errors"
	"fmt"
	"strings"
)

// Postgres is the dialect of PostgreSQL 15 and later. Names are not quoted: the server folds them to lower case.
var Postgres = Dialect{
	Name: "postgres",
	table: `CREATE TABLE IF NOT EXISTS {{t}} (event_id text NOT NULL PRIMARY KEY, cluster text NOT NULL, namespace text NOT NULL,
  namespace_uid text NOT NULL, tenant text NOT NULL, tenant_uid text NOT NULL, generation bigint NOT NULL,
  op text NOT NULL CHECK (op IN ('SET','END')), cost_center text NOT NULL, owner text NOT NULL,
  labels jsonb NOT NULL, content_hash text NOT NULL,
  effective_at timestamptz NOT NULL, recorded_at timestamptz NOT NULL)`,
	index: `CREATE INDEX IF NOT EXISTS {{t}}_places ON {{t}} (cluster, namespace, effective_at)`,
	runs: `CREATE TABLE IF NOT EXISTS {{t}}_runs (run_id text NOT NULL PRIMARY KEY, cluster text NOT NULL, exporter text NOT NULL,
  version text NOT NULL, started_at timestamptz NOT NULL, complete_until timestamptz NOT NULL, recorded_at timestamptz NOT NULL)`,
	createView: `CREATE OR REPLACE VIEW `,
	// The server drops comments from a view's text, so a COMMENT on the view has the version.
	describeView: `COMMENT ON VIEW {{v}} IS '` + viewMark + `{{version}}'`,
	viewVersion:  `SELECT coalesce(obj_description(to_regclass({{p1}}), 'pg_class'), '')`,
	instant:      `{{p}}::timestamptz`,
	now:          `clock_timestamp()`,
	insert:       postgresInsert("clock_timestamp()", ""),
	copyRows:     postgresInsert("r.recorded_at", ", recorded_at timestamptz"),
	byID:         `event_id COLLATE "C"`,
	// information_schema shows only tables that the user has a right on; to_regclass finds any table on the search
	// path.
	columns: `SELECT attname::text, format_type(atttypid, atttypmod),
  CASE WHEN attnotnull AND NOT atthasdef AND attidentity = '' THEN 1 ELSE 0 END
FROM pg_attribute WHERE attrelid = to_regclass({{p1}}) AND attnum > 0 AND NOT attisdropped ORDER BY attnum`,
	types: map[string]string{"event_id": "text", "cluster": "text", "namespace": "text", "namespace_uid": "text", "tenant": "text",
		"tenant_uid": "text", "generation": "bigint", "op": "text", "cost_center": "text", "owner": "text", "labels": "jsonb",
		"content_hash": "text", "effective_at": "timestamp with time zone", "recorded_at": "timestamp with time zone"},
	list:        `SELECT jsonb_array_elements_text({{p2}}::jsonb)`,
	placeholder: func(n int) string { return fmt.Sprintf("$%d", n) },
	longestName: 63,
	trouble:     postgresTrouble,
	refusedWrite: func(err error) bool {
		var coded interface{ SQLState() string }
		return errors.As(err, &coded) && coded.SQLState() == "25006" // read_only_sql_transaction
	},
}

// postgresInsert returns the INSERT with the SQL for recorded_at, and the further columns that this SQL reads.
func postgresInsert(recorded, further string) string {
	return `INSERT INTO {{t}} (` + strings.Join(eventColumns, ", ") + `)
SELECT ` + listColumns(func(column string) string { return "r." + column }) + `, ` + recorded + `
FROM jsonb_to_recordset({{p1}}::jsonb) AS r(` + listColumns(func(column string) string {
		switch column {
		case "generation":
			return column + " bigint"
		case "labels":
			return column + " jsonb"
		case "effective_at":
			return column + " timestamptz"
		}
		return column + " text"
	}) + further + `)
ON CONFLICT (event_id) DO NOTHING`
}
