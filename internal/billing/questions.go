package billing

// The queries and the small statements, whose text is the same for all engines but for the placeholders in {{ }}.
const (
	openText = `SELECT namespace, namespace_uid, tenant, tenant_uid, generation, cost_center, owner, content_hash, valid_from
FROM {{t}}_periods WHERE cluster = {{p1}} AND valid_to IS NULL`

	orderedText = `SELECT namespace, namespace_uid, tenant, tenant_uid, generation, op, cost_center, owner, content_hash, effective_at
FROM {{t}} WHERE cluster = {{p1}} ORDER BY namespace, effective_at, generation, recorded_at, event_id`

	latestText = `SELECT namespace, MAX(effective_at) FROM {{t}}
WHERE cluster = {{p1}} AND namespace IN ({{list}}) GROUP BY namespace`

	startRunText = `INSERT INTO {{t}}_runs (run_id, cluster, exporter, version, started_at, complete_until, recorded_at)
VALUES ({{p1}}, {{p2}}, {{p3}}, {{p4}}, {{i5}}, {{i6}}, {{now}})`

	watermarkText = `UPDATE {{t}}_runs SET complete_until = {{i1}}, recorded_at = {{now}} WHERE run_id = {{p2}}`

	clustersText = `SELECT DISTINCT cluster FROM {{t}} ORDER BY cluster`

	allRunsText = `SELECT run_id, cluster, exporter, version, started_at, complete_until FROM {{t}}_runs`

	recentRunsText = `SELECT run_id, exporter, version, started_at, complete_until FROM {{t}}_runs
WHERE cluster = {{p1}} ORDER BY started_at DESC LIMIT 20`
)
