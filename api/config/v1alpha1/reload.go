package v1alpha1

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// restartFields are the keys that are read once, at start: those whose column "reload" says
// "restart" in docs/reference/configuration.md. at returns a pointer to the field.
var restartFields = []struct {
	name string
	at   func(*OperatorConfiguration) any
}{
	{"informers.verifyInterval", func(c *OperatorConfiguration) any { return &c.Informers.VerifyInterval }},
	{"informers.idleGrace", func(c *OperatorConfiguration) any { return &c.Informers.IdleGrace }},
	{"informers.degradedAfter", func(c *OperatorConfiguration) any { return &c.Informers.DegradedAfter }},
	{"informers.maxInformers", func(c *OperatorConfiguration) any { return &c.Informers.MaxInformers }},
	{"informers.maxNamespaces", func(c *OperatorConfiguration) any { return &c.Informers.MaxNamespaces }},
	{"propagation.bindOwnRole", func(c *OperatorConfiguration) any { return &c.Propagation.BindOwnRole }},
	{"billing.driver", func(c *OperatorConfiguration) any { return &c.Billing.Driver }},
	{"billing.clusterID", func(c *OperatorConfiguration) any { return &c.Billing.ClusterID }},
	{"billing.table", func(c *OperatorConfiguration) any { return &c.Billing.Table }},
	{"billing.schema", func(c *OperatorConfiguration) any { return &c.Billing.Schema }},
	{"billing.flushInterval", func(c *OperatorConfiguration) any { return &c.Billing.FlushInterval }},
	{"billing.resyncInterval", func(c *OperatorConfiguration) any { return &c.Billing.ResyncInterval }},
	{"billing.batch.maxRows", func(c *OperatorConfiguration) any { return &c.Billing.Batch.MaxRows }},
	{"billing.batch.maxBytes", func(c *OperatorConfiguration) any { return &c.Billing.Batch.MaxBytes }},
	{"billing.outbox.path", func(c *OperatorConfiguration) any { return &c.Billing.Outbox.Path }},
	{"billing.outbox.maxRows", func(c *OperatorConfiguration) any { return &c.Billing.Outbox.MaxRows }},
	{"billing.sqlite.path", func(c *OperatorConfiguration) any { return &c.Billing.SQLite.Path }},
	{"billing.postgres.dsnFile", func(c *OperatorConfiguration) any { return &c.Billing.Postgres.DSNFile }},
	{"billing.bigquery.project", func(c *OperatorConfiguration) any { return &c.Billing.BigQuery.Project }},
	{"billing.bigquery.dataset", func(c *OperatorConfiguration) any { return &c.Billing.BigQuery.Dataset }},
	{"billing.bigquery.location", func(c *OperatorConfiguration) any { return &c.Billing.BigQuery.Location }},
	{"billing.bigquery.credentialsFile", func(c *OperatorConfiguration) any { return &c.Billing.BigQuery.CredentialsFile }},
	{"billing.bigquery.endpoint", func(c *OperatorConfiguration) any { return &c.Billing.BigQuery.Endpoint }},
	{"billing.bigquery.statementTimeout", func(c *OperatorConfiguration) any { return &c.Billing.BigQuery.StatementTimeout }},
	{"billing.bigquery.maximumBytesBilled", func(c *OperatorConfiguration) any { return &c.Billing.BigQuery.MaximumBytesBilled }},
	{"billing.usage.enabled", func(c *OperatorConfiguration) any { return &c.Billing.Usage.Enabled }},
	{"billing.usage.gpus", func(c *OperatorConfiguration) any { return &c.Billing.Usage.GPUs }},
	{"controllers", func(c *OperatorConfiguration) any { return &c.Controllers }},
	{"clientConnection.qps", func(c *OperatorConfiguration) any { return &c.ClientConnection.QPS }},
	{"clientConnection.burst", func(c *OperatorConfiguration) any { return &c.ClientConnection.Burst }},
	{"concurrency", func(c *OperatorConfiguration) any { return &c.Concurrency }},
	{"featureGates", func(c *OperatorConfiguration) any { return &c.FeatureGates }},
}

// kindScope is the one restart field in a list. A kind that joins while running may have any scope.
const kindScope = "propagation.kinds[].scope"

// RestartRequired returns the names of the fields, as the configuration file has them, that differ between the running
// configuration and a new one and are in force only after a restart.
func RestartRequired(running, file *OperatorConfiguration) []string {
	var names []string
	for _, f := range restartFields {
		if !equality.Semantic.DeepEqual(f.at(running), f.at(file)) {
			names = append(names, f.name)
		}
	}
	for _, kind := range file.Propagation.Kinds {
		if before := running.Propagated(kind.GroupKind()); before != nil && before.Scope != kind.Scope {
			return append(names, kindScope)
		}
	}
	return names
}

// InForce returns what is in force when a running operator reads a new file: the file, but for the fields that need a
// restart, which stay as they run. Neither argument is changed.
func InForce(running, file *OperatorConfiguration) *OperatorConfiguration {
	out := *file
	for _, f := range restartFields {
		reflect.ValueOf(f.at(&out)).Elem().Set(reflect.ValueOf(f.at(running)).Elem())
	}
	out.Propagation.Kinds = slices.Clone(file.Propagation.Kinds)
	for i := range out.Propagation.Kinds {
		if before := running.Propagated(out.Propagation.Kinds[i].GroupKind()); before != nil {
			out.Propagation.Kinds[i].Scope = before.Scope
		}
	}
	return &out
}

// LabelledKinds are the propagated kinds of whose generated objects sources are made, by gate PropagateGenerated: none of RBAC, which
// would hand out rights of somebody else's.
func (c *OperatorConfiguration) LabelledKinds() []PropagatedKind {
	var kinds []PropagatedKind
	for _, kind := range c.Propagation.Kinds {
		if kind.Mode != ModeRemove && withBuiltInGroup(kind.GroupKind()).Group != rbacGroup {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Propagated returns how a kind is propagated, nil if it is not.
func (c *OperatorConfiguration) Propagated(kind schema.GroupKind) *PropagatedKind {
	for i := range c.Propagation.Kinds {
		if c.Propagation.Kinds[i].GroupKind() == kind {
			return &c.Propagation.Kinds[i]
		}
	}
	return nil
}
