package billing

import (
	"errors"
	"strings"
	"time"
)

// BigQuery is the dialect of GoogleSQL for the tables of one dataset. All names include project and dataset, because a
// view doesn't keep the default project and dataset of the job that made it. BigQuery enforces no keys: an INSERT
// leaves out rows that exist already. The view drops duplicates that two writers have inserted at the same moment.
func BigQuery(project, dataset string) Dialect {
	return Dialect{
		Name:   "bigquery",
		prefix: "`" + project + "`.`" + dataset + "`.",
		table: `CREATE TABLE IF NOT EXISTS {{t}} (event_id STRING NOT NULL, cluster STRING NOT NULL, namespace STRING NOT NULL,
  namespace_uid STRING NOT NULL, tenant STRING NOT NULL, tenant_uid STRING NOT NULL, generation INT64 NOT NULL,
  op STRING NOT NULL, cost_center STRING NOT NULL, owner STRING NOT NULL, labels JSON NOT NULL,
  content_hash STRING NOT NULL, effective_at TIMESTAMP NOT NULL, recorded_at TIMESTAMP NOT NULL)
PARTITION BY TIMESTAMP_TRUNC(effective_at, MONTH) CLUSTER BY cluster, namespace
OPTIONS (description = 'warren billing events, append-only', labels = [('managed-by', 'warren')])`,
		runs: `CREATE TABLE IF NOT EXISTS {{t}}_runs (run_id STRING NOT NULL, cluster STRING NOT NULL, exporter STRING NOT NULL,
  version STRING NOT NULL, started_at TIMESTAMP NOT NULL, complete_until TIMESTAMP NOT NULL, recorded_at TIMESTAMP NOT NULL)`,
		createView: `CREATE OR REPLACE VIEW `,
		// BigQuery doesn't document whether a view keeps the comments of its text, so the description has the version.
		viewOptions:  "\nOPTIONS (description = '" + viewMark + "{{version}}')",
		viewVersion:  `SELECT option_value FROM {{d}}INFORMATION_SCHEMA.TABLE_OPTIONS WHERE table_name = {{p1}} AND option_name = 'description'`,
		instant:      `TIMESTAMP({{p}})`,
		now:          `CURRENT_TIMESTAMP()`,
		insert:       bigqueryInsert("CURRENT_TIMESTAMP()", ""),
		copyRows:     bigqueryInsert("s.recorded_at", ", TIMESTAMP(JSON_VALUE(r, '$.recorded_at')) AS recorded_at"),
		byID:         "event_id",
		insertBounds: true,
		columns: `SELECT column_name, data_type, CASE WHEN is_nullable = 'NO' AND COALESCE(column_default, 'NULL') = 'NULL' THEN 1 ELSE 0 END
FROM {{d}}INFORMATION_SCHEMA.COLUMNS WHERE table_name = {{p1}} ORDER BY ordinal_position`,
		types: map[string]string{"event_id": "STRING", "cluster": "STRING", "namespace": "STRING", "namespace_uid": "STRING", "tenant": "STRING",
			"tenant_uid": "STRING", "generation": "INT64", "op": "STRING", "cost_center": "STRING", "owner": "STRING", "labels": "JSON",
			"content_hash": "STRING", "effective_at": "TIMESTAMP", "recorded_at": "TIMESTAMP"},
		list:           `SELECT JSON_VALUE(n) FROM UNNEST(JSON_QUERY_ARRAY({{p2}})) AS n`,
		placeholder:    func(int) string { return "?" },
		watermarkEvery: 15 * time.Minute, // an UPDATE rewrites whole storage blocks, and few may run at a time
		trouble:        bigqueryTrouble,
		refusedWrite: func(err error) bool {
			var known interface{ Reason() string }
			return errors.As(err, &known) && known.Reason() == "readOnly"
		},
	}
}

// bigqueryInsert returns the INSERT with the SQL for recorded_at, and the further columns that this SQL reads.
func bigqueryInsert(recorded, further string) string {
	return `INSERT INTO {{t}} (` + strings.Join(eventColumns, ", ") + `)
SELECT ` + listColumns(func(column string) string { return "s." + column }) + `, ` + recorded + ` FROM (
  SELECT ` + listColumns(bigqueryField) + further + `
  FROM UNNEST(JSON_QUERY_ARRAY({{p1}})) AS r) AS s
WHERE NOT EXISTS (SELECT 1 FROM {{t}} AS e WHERE e.event_id = s.event_id AND e.effective_at BETWEEN {{i2}} AND {{i3}})`
}

// bigqueryField returns the SQL for a column's value in r, an object of the JSON array.
func bigqueryField(column string) string {
	value := "JSON_VALUE(r, '$." + column + "')"
	switch column {
	case "generation":
		value = "CAST(" + value + " AS INT64)"
	case "labels":
		value = "PARSE_JSON(JSON_QUERY(r, '$.labels'))"
	case "effective_at":
		value = "TIMESTAMP(" + value + ")"
	}
	return value + " AS " + column
}
