package billing

import (
	"errors"
	"strings"
)

// SQLite is the dialect of SQLite 3.38 and later. Times are text of a fixed width, in UTC.
var SQLite = Dialect{
	Name: "sqlite",
	table: `CREATE TABLE IF NOT EXISTS {{t}} (event_id TEXT NOT NULL PRIMARY KEY, cluster TEXT NOT NULL, namespace TEXT NOT NULL,
  namespace_uid TEXT NOT NULL, tenant TEXT NOT NULL, tenant_uid TEXT NOT NULL, generation INTEGER NOT NULL,
  op TEXT NOT NULL CHECK (op IN ('SET','END')), cost_center TEXT NOT NULL, owner TEXT NOT NULL,
  labels TEXT NOT NULL CHECK (json_valid(labels)), content_hash TEXT NOT NULL,
  effective_at TEXT NOT NULL, recorded_at TEXT NOT NULL) STRICT, WITHOUT ROWID`,
	index: `CREATE INDEX IF NOT EXISTS {{t}}_places ON {{t}} (cluster, namespace, effective_at)`,
	runs: `CREATE TABLE IF NOT EXISTS {{t}}_runs (run_id TEXT NOT NULL PRIMARY KEY, cluster TEXT NOT NULL, exporter TEXT NOT NULL,
  version TEXT NOT NULL, started_at TEXT NOT NULL, complete_until TEXT NOT NULL, recorded_at TEXT NOT NULL) STRICT`,
	dropView:    `DROP VIEW IF EXISTS {{v}}`,
	createView:  `CREATE VIEW `,
	viewVersion: `SELECT sql FROM sqlite_master WHERE type = 'view' AND name = {{p1}} COLLATE NOCASE`,
	instant:     `{{p}}`,
	now:         `strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')`,
	insert:      sqliteInsert(`strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')`),
	copyRows:    sqliteInsert(`r.value ->> 'recorded_at'`),
	byID:        "event_id",
	columns:     `SELECT name, lower(type), CASE WHEN "notnull" = 1 AND dflt_value IS NULL THEN 1 ELSE 0 END FROM pragma_table_info({{p1}})`,
	types: map[string]string{"event_id": "text", "cluster": "text", "namespace": "text", "namespace_uid": "text", "tenant": "text",
		"tenant_uid": "text", "generation": "integer", "op": "text", "cost_center": "text", "owner": "text", "labels": "text",
		"content_hash": "text", "effective_at": "text", "recorded_at": "text"},
	ordered:     orderedText,
	list:        `SELECT value FROM json_each({{p2}})`,
	placeholder: func(int) string { return "?" },
	trouble:     sqliteTrouble,
	advice:      sqliteAdvice,
	refusedWrite: func(err error) bool {
		var coded interface{ Code() int }
		return errors.As(err, &coded) && coded.Code()&0xff == 8 // READONLY
	},
}

// sqliteInsert returns the INSERT with the SQL for recorded_at.
func sqliteInsert(recorded string) string {
	return `INSERT INTO {{t}} (` + strings.Join(eventColumns, ", ") + `)
SELECT ` + listColumns(func(column string) string {
		if column == "labels" {
			return "r.value -> 'labels'"
		}
		return "r.value ->> '" + column + "'"
	}) + `, ` + recorded + `
FROM json_each({{p1}}) AS r WHERE true ON CONFLICT (event_id) DO NOTHING`
}
