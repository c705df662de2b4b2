// Package billing keeps the ledger of who owned which namespace, and when, in a warehouse behind database/sql.
//
// There is one table, to which rows are only ever appended, and a view over it:
//
//   - a row of the table is an Event. From its time on, a namespace belongs to a tenant and is billed with the row's values (SET), or no
//     longer does (END). Its event_id is a hash of its content, so that a repeat, a crash or a second writer adds nothing;
//
//   - a row of the view <table>_periods is a Period: [valid_from, valid_to) of a namespace, with its tenant, cost center, owner and
//     labels; valid_to is null while it lasts. Cost data joins on cluster, namespace and time:
//
//     SELECT * FROM tenant_billing_periods WHERE tenant = 'payments' ORDER BY valid_from
//
// Times are UTC with microseconds. effective_at, which bounds the periods, is a time of the API server wherever there
// is one. recorded_at is when the row was stored, by the warehouse's clock, and bounds nothing.
//
// Why events and a view, and no table whose rows are closed by MERGE: the dialects of MERGE differ, two changes of one
// namespace in one batch fail, a repeat opens a closed row again, and BigQuery queues only few such statements. Rows
// that never change are an audit, an INSERT conflicts with nothing, and the view orders rows that arrive late.
//
// Why a row for each namespace, although the tenant is billed: every source of cost data joins on cluster and
// namespace. Column cluster must equal the name of the cluster there.
//
// Why level-triggered: what the ledger lacks is a difference until the ledger has it. So the exporter needs no file, no
// queue and no finalizer, and no tenant waits for the warehouse. Dated events are sent unchanged until the ledger has
// them, so a lost answer doubles nothing. Only states that began and ended while no exporter ran are lost.
// managedFields date nothing: a manager can backdate them.
//
// A batch is one JSON array in one text parameter: no limit on the number of parameters applies, and nothing needs
// quoting. One statement stores all of its batch or nothing. On BigQuery it is an INSERT … SELECT … WHERE NOT EXISTS,
// because a MERGE counts as mutating DML, of which two run at once. Ensure runs once per process, because DDL counts
// against the rate of table updates.
//
// The view has a version. With schema manage the exporter replaces an older view, and leaves a newer one as it is.
//
// A Dialect holds the SQL of one engine, and a Store runs it. A Plan dates the events that bring the open periods to
// what the cluster shows. The package knows nothing of Kubernetes.
package billing
