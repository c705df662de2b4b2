-- What the ledger sends to BigQuery. Written by `go test ./internal/billing -run TestStatementsOfBigQuery -update`.

-- table
CREATE TABLE IF NOT EXISTS `acme-finops`.`finops`.tenant_billing (event_id STRING NOT NULL, cluster STRING NOT NULL, namespace STRING NOT NULL,
  namespace_uid STRING NOT NULL, tenant STRING NOT NULL, tenant_uid STRING NOT NULL, generation INT64 NOT NULL,
  op STRING NOT NULL, cost_center STRING NOT NULL, owner STRING NOT NULL, labels JSON NOT NULL,
  content_hash STRING NOT NULL, effective_at TIMESTAMP NOT NULL, recorded_at TIMESTAMP NOT NULL)
PARTITION BY TIMESTAMP_TRUNC(effective_at, MONTH) CLUSTER BY cluster, namespace
OPTIONS (description = 'warren billing events, append-only', labels = [('managed-by', 'warren')]);

-- runs
CREATE TABLE IF NOT EXISTS `acme-finops`.`finops`.tenant_billing_runs (run_id STRING NOT NULL, cluster STRING NOT NULL, exporter STRING NOT NULL,
  version STRING NOT NULL, started_at TIMESTAMP NOT NULL, complete_until TIMESTAMP NOT NULL, recorded_at TIMESTAMP NOT NULL);

-- view
CREATE OR REPLACE VIEW `acme-finops`.`finops`.tenant_billing_periods
OPTIONS (description = 'warren billing view 2') AS /* warren billing view 2 */
WITH dedup AS (
  SELECT e.*, ROW_NUMBER() OVER (PARTITION BY cluster, namespace, event_id ORDER BY recorded_at) AS rn FROM `acme-finops`.`finops`.tenant_billing AS e
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
FROM periods WHERE op = 'SET' AND (valid_to IS NULL OR valid_to > effective_at);

-- insert
INSERT INTO `acme-finops`.`finops`.tenant_billing (event_id, cluster, namespace, namespace_uid, tenant, tenant_uid, generation, op, cost_center, owner, labels, content_hash, effective_at, recorded_at)
SELECT s.event_id, s.cluster, s.namespace, s.namespace_uid, s.tenant, s.tenant_uid, s.generation, s.op, s.cost_center, s.owner, s.labels, s.content_hash, s.effective_at, CURRENT_TIMESTAMP() FROM (
  SELECT JSON_VALUE(r, '$.event_id') AS event_id, JSON_VALUE(r, '$.cluster') AS cluster, JSON_VALUE(r, '$.namespace') AS namespace, JSON_VALUE(r, '$.namespace_uid') AS namespace_uid, JSON_VALUE(r, '$.tenant') AS tenant, JSON_VALUE(r, '$.tenant_uid') AS tenant_uid, CAST(JSON_VALUE(r, '$.generation') AS INT64) AS generation, JSON_VALUE(r, '$.op') AS op, JSON_VALUE(r, '$.cost_center') AS cost_center, JSON_VALUE(r, '$.owner') AS owner, PARSE_JSON(JSON_QUERY(r, '$.labels')) AS labels, JSON_VALUE(r, '$.content_hash') AS content_hash, TIMESTAMP(JSON_VALUE(r, '$.effective_at')) AS effective_at
  FROM UNNEST(JSON_QUERY_ARRAY(?)) AS r) AS s
WHERE NOT EXISTS (SELECT 1 FROM `acme-finops`.`finops`.tenant_billing AS e WHERE e.event_id = s.event_id AND e.effective_at BETWEEN TIMESTAMP(?) AND TIMESTAMP(?));

-- columns
SELECT column_name, data_type, CASE WHEN is_nullable = 'NO' AND COALESCE(column_default, 'NULL') = 'NULL' THEN 1 ELSE 0 END
FROM `acme-finops`.`finops`.INFORMATION_SCHEMA.COLUMNS WHERE table_name = ? ORDER BY ordinal_position;

-- viewVersion
SELECT option_value FROM `acme-finops`.`finops`.INFORMATION_SCHEMA.TABLE_OPTIONS WHERE table_name = ? AND option_name = 'description';

-- open
SELECT namespace, namespace_uid, tenant, tenant_uid, generation, cost_center, owner, content_hash, valid_from
FROM `acme-finops`.`finops`.tenant_billing_periods WHERE cluster = ? AND valid_to IS NULL;

-- latest
SELECT namespace, MAX(effective_at) FROM `acme-finops`.`finops`.tenant_billing
WHERE cluster = ? AND namespace IN (SELECT JSON_VALUE(n) FROM UNNEST(JSON_QUERY_ARRAY(?)) AS n) GROUP BY namespace;

-- startRun
INSERT INTO `acme-finops`.`finops`.tenant_billing_runs (run_id, cluster, exporter, version, started_at, complete_until, recorded_at)
VALUES (?, ?, ?, ?, TIMESTAMP(?), TIMESTAMP(?), CURRENT_TIMESTAMP());

-- moveWatermark
UPDATE `acme-finops`.`finops`.tenant_billing_runs SET complete_until = TIMESTAMP(?), recorded_at = CURRENT_TIMESTAMP() WHERE run_id = ?;

-- recentRuns
SELECT run_id, exporter, version, started_at, complete_until FROM `acme-finops`.`finops`.tenant_billing_runs
WHERE cluster = ? ORDER BY started_at DESC LIMIT 20;

-- copyRows
INSERT INTO `acme-finops`.`finops`.tenant_billing (event_id, cluster, namespace, namespace_uid, tenant, tenant_uid, generation, op, cost_center, owner, labels, content_hash, effective_at, recorded_at)
SELECT s.event_id, s.cluster, s.namespace, s.namespace_uid, s.tenant, s.tenant_uid, s.generation, s.op, s.cost_center, s.owner, s.labels, s.content_hash, s.effective_at, s.recorded_at FROM (
  SELECT JSON_VALUE(r, '$.event_id') AS event_id, JSON_VALUE(r, '$.cluster') AS cluster, JSON_VALUE(r, '$.namespace') AS namespace, JSON_VALUE(r, '$.namespace_uid') AS namespace_uid, JSON_VALUE(r, '$.tenant') AS tenant, JSON_VALUE(r, '$.tenant_uid') AS tenant_uid, CAST(JSON_VALUE(r, '$.generation') AS INT64) AS generation, JSON_VALUE(r, '$.op') AS op, JSON_VALUE(r, '$.cost_center') AS cost_center, JSON_VALUE(r, '$.owner') AS owner, PARSE_JSON(JSON_QUERY(r, '$.labels')) AS labels, JSON_VALUE(r, '$.content_hash') AS content_hash, TIMESTAMP(JSON_VALUE(r, '$.effective_at')) AS effective_at, TIMESTAMP(JSON_VALUE(r, '$.recorded_at')) AS recorded_at
  FROM UNNEST(JSON_QUERY_ARRAY(?)) AS r) AS s
WHERE NOT EXISTS (SELECT 1 FROM `acme-finops`.`finops`.tenant_billing AS e WHERE e.event_id = s.event_id AND e.effective_at BETWEEN TIMESTAMP(?) AND TIMESTAMP(?));

-- allRows
SELECT event_id, cluster, namespace, namespace_uid, tenant, tenant_uid, generation, op, cost_center, owner, labels, content_hash, effective_at, recorded_at FROM `acme-finops`.`finops`.tenant_billing ORDER BY event_id, recorded_at;

-- clusters
SELECT DISTINCT cluster FROM `acme-finops`.`finops`.tenant_billing ORDER BY cluster;

-- allRuns
SELECT run_id, cluster, exporter, version, started_at, complete_until FROM `acme-finops`.`finops`.tenant_billing_runs;
