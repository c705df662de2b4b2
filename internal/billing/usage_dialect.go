package billing

import "strings"

// The table of hours and the view over it.
const (
	usageSuffix      = "_usage"
	usageIndexSuffix = "_usage_i"
	hoursSuffix      = "_hours"
)

// hoursVersion counts the texts of the view over the hours that were ever released, as viewVersion does.
const hoursVersion = 1

// usageColumns are the columns of the table in the order in which they are written.
var usageColumns = []string{"usage_id", "cluster", "namespace", "hour", "covered_from", "covered_until", "covered_seconds",
	"cpu_millicore_seconds", "memory_mib_seconds", "storage_mib_seconds", "gpu_seconds", "recorded_at"}

// hoursColumns are the columns of the view of hours.
var hoursColumns = []string{"cluster", "namespace", "hour", "tenant", "cost_center", "owner", "covered_seconds", "cpu_core_hours",
	"memory_gib_hours", "storage_gib_hours", "gpu_hours", "recorded_at"}

// hoursText is the view's text for all engines. A piece that is stored twice counts once; the pieces of an hour are added up. An
// hour is billed to the tenant that held the namespace last between the first and the last piece of that hour in which the
// namespace had something reserved. All windows are partitioned by cluster, namespace and hour first, so that a query for some of
// them reads no others.
const hoursText = `{{v}}{{viewOptions}} AS /* ` + viewMark + `{{version}} */
WITH dedup AS (
  SELECT u.*, ROW_NUMBER() OVER (PARTITION BY cluster, namespace, hour, usage_id ORDER BY recorded_at) AS rn FROM {{t}}_usage AS u
), hours AS (
  SELECT cluster, namespace, hour, MIN(covered_from) AS covered_from, MAX(covered_until) AS covered_until,
         SUM(covered_seconds) AS covered_seconds, SUM(cpu_millicore_seconds) AS cpu, SUM(memory_mib_seconds) AS memory,
         SUM(storage_mib_seconds) AS storage, SUM(gpu_seconds) AS gpu, MAX(recorded_at) AS recorded_at
  FROM dedup WHERE rn = 1 GROUP BY cluster, namespace, hour
), held AS (
  SELECT h.*, p.tenant, p.cost_center, p.owner,
         ROW_NUMBER() OVER (PARTITION BY h.cluster, h.namespace, h.hour ORDER BY p.valid_from DESC) AS rn
  FROM hours AS h LEFT JOIN {{t}}_periods AS p ON p.cluster = h.cluster AND p.namespace = h.namespace
   AND p.valid_from < h.covered_until AND (p.valid_to IS NULL OR p.valid_to > h.covered_from)
)
SELECT cluster, namespace, hour, COALESCE(tenant, '') AS tenant, COALESCE(cost_center, '') AS cost_center, COALESCE(owner, '') AS owner,
       covered_seconds, cpu / 3600000.0 AS cpu_core_hours, memory / 3686400.0 AS memory_gib_hours, storage / 3686400.0 AS storage_gib_hours,
       gpu / 3600.0 AS gpu_hours, recorded_at
FROM held WHERE rn = 1`

// usageKind returns a column's kind of value: text, number or instant.
func usageKind(column string) string {
	switch column {
	case "hour", "covered_from", "covered_until", "recorded_at":
		return "instant"
	case "covered_seconds", "cpu_millicore_seconds", "memory_mib_seconds", "storage_mib_seconds", "gpu_seconds":
		return "number"
	}
	return "text"
}

// usageTableText returns the statement that creates the table. types are the engine's types by usageKind, and behind is the text
// after the columns.
func usageTableText(types map[string]string, behind string) string {
	columns := make([]string, len(usageColumns))
	for i, column := range usageColumns {
		columns[i] = column + " " + types[usageKind(column)] + " NOT NULL"
	}
	return "CREATE TABLE IF NOT EXISTS {{t}}_usage (" + strings.Join(columns, ", ") + behind
}

// usageTypes returns the types by column, as the engine names them when it describes a table.
func usageTypes(types map[string]string) map[string]string {
	all := map[string]string{}
	for _, column := range usageColumns {
		all[column] = types[usageKind(column)]
	}
	return all
}

const usageIndexText = `CREATE INDEX IF NOT EXISTS {{t}}_usage_i ON {{t}}_usage (cluster, hour, namespace)`

var (
	sqliteUsage   = map[string]string{"text": "TEXT", "number": "INTEGER", "instant": "TEXT"}
	postgresUsage = map[string]string{"text": "text", "number": "bigint", "instant": "timestamptz"}
	bigqueryUsage = map[string]string{"text": "STRING", "number": "INT64", "instant": "TIMESTAMP"}
)

var sqliteUsageInsert = `INSERT INTO {{t}}_usage (` + strings.Join(usageColumns, ", ") + `)
SELECT ` + eachOf(usageColumns, func(column string) string { return "r.value ->> '" + column + "'" }) + `, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')
FROM json_each({{p1}}) AS r WHERE true ON CONFLICT (usage_id) DO NOTHING`

var postgresUsageInsert = `INSERT INTO {{t}}_usage (` + strings.Join(usageColumns, ", ") + `)
SELECT ` + eachOf(usageColumns, func(column string) string { return "r." + column }) + `, clock_timestamp()
FROM jsonb_to_recordset({{p1}}::jsonb) AS r(` + eachOf(usageColumns, func(column string) string {
	return column + " " + postgresUsage[usageKind(column)]
}) + `)
ON CONFLICT (usage_id) DO NOTHING`

var bigqueryUsageInsert = `INSERT INTO {{t}}_usage (` + strings.Join(usageColumns, ", ") + `)
SELECT ` + eachOf(usageColumns, func(column string) string { return "s." + column }) + `, CURRENT_TIMESTAMP() FROM (
  SELECT ` + eachOf(usageColumns, func(column string) string {
	value := "JSON_VALUE(r, '$." + column + "')"
	switch usageKind(column) {
	case "number":
		value = "CAST(" + value + " AS INT64)"
	case "instant":
		value = "TIMESTAMP(" + value + ")"
	}
	return value + " AS " + column
}) + `
  FROM UNNEST(JSON_QUERY_ARRAY({{p1}})) AS r) AS s
WHERE NOT EXISTS (SELECT 1 FROM {{t}}_usage AS e WHERE e.usage_id = s.usage_id AND e.hour BETWEEN {{i2}} AND {{i3}})`

// UsageDDL returns the statements that an administrator runs, besides those of DDL, where billing.usage is enabled and the exporter
// may create no tables.
func (d Dialect) UsageDDL(table string) ([]string, error) {
	text, err := d.statements(table)
	if err != nil {
		return nil, err
	}
	return present(text.usageTable, text.hoursView, text.describeHours, text.usageIndex), nil
}
