// Package billing keeps the ledger of who owned which namespace, and when, in a warehouse behind database/sql.
//
// There is one table, to which rows are only ever appended, and a view over it:
//
//   - a row of the table is an Event: from this instant on a namespace belongs to a tenant and is billed so (SET), or it
//     no longer does (END). Its event_id is made from what it says, so that a repeat, a crash or a second writer adds nothing;
//
//   - a row of the view <table>_periods is a Period: [valid_from, valid_to) of a namespace, with its tenant, cost center, owner and
//     labels; valid_to is null while it lasts. Cost data joins on cluster, namespace and time:
//
//     SELECT * FROM tenant_billing_periods WHERE tenant = 'payments' ORDER BY valid_from
//
// Times are UTC with microseconds. effective_at, the bounds of the periods, is the API server's time wherever it has one;
// recorded_at is the warehouse's clock when the row came in, and bounds nothing.
//
// A Dialect is the text of one engine; a Store sends it. Diff compares what should be with the open periods. An Outbox holds
// events in a local file until a Flusher has got them into the warehouse. The package knows nothing of Kubernetes.
package billing
