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
// Times are UTC with microseconds. effective_at, which bounds the periods, is a time of the API server wherever there is one. recorded_at
// is when the row was stored, by the warehouse's clock, and bounds nothing.
//
// A Dialect holds the SQL of one engine, and a Store runs it. A Plan dates the events that bring the open periods to what the cluster
// shows. The package knows nothing of Kubernetes.
package billing
