package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancy "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Billing states where the ledger is written and what a tenant must state.
type Billing struct {
	// Driver is none (default), sqlite, postgres or bigquery. The section of the chosen one must be complete.
	Driver BillingDriver `json:"driver"`

	// ClusterID is the name of this cluster in the ledger. It must be the name that the cloud's cost data has for the cluster, on GKE
	// PROJECT/LOCATION/NAME. Required with drivers postgres and bigquery.
	ClusterID string `json:"clusterID"`

	// Table is a plain SQL name. Default tenant_billing. The view is called <table>_periods.
	Table string `json:"table"`

	// Schema is manage (default: table and view are made) or verify (they are only compared).
	Schema BillingSchema `json:"schema"`

	// FlushInterval is how often the exporter writes what the ledger lacks, at least 1s. Default 1m.
	FlushInterval metav1.Duration `json:"flushInterval"`

	// ResyncInterval is how often cluster and table are compared, at least 1m. Default 1h.
	ResyncInterval metav1.Duration `json:"resyncInterval"`

	Batch    BillingBatch    `json:"batch"`
	SQLite   BillingSQLite   `json:"sqlite"`
	Postgres BillingPostgres `json:"postgres"`
	BigQuery BillingBigQuery `json:"bigquery"`

	// NamespaceLabels copy the billing of an LNamespace to the namespaces of its tree, whatever the driver.
	NamespaceLabels BillingNamespaceLabels `json:"namespaceLabels"`

	// Defaults fill the billing of an LNamespace at its creation: the first that names its maker and agrees with what is stated.
	// Default [].
	Defaults []BillingDefault `json:"defaults"`

	// Required lists the fields that a new LNamespace may not leave empty, of costCenter and owner. Default [].
	Required []BillingField `json:"required"`

	// CostCenterPattern is a Go regexp, unanchored. Default none.
	CostCenterPattern string `json:"costCenterPattern"`
}

// BillingDriver names the engine of the ledger.
type BillingDriver string

// The engines of the ledger.
const (
	DriverNone     BillingDriver = "none"
	DriverSQLite   BillingDriver = "sqlite"
	DriverPostgres BillingDriver = "postgres"
	DriverBigQuery BillingDriver = "bigquery"
)

// BillingSchema states who makes the table and the view.
type BillingSchema string

// Who makes the table and the view.
const (
	SchemaManage BillingSchema = "manage" // the operator
	SchemaVerify BillingSchema = "verify" // an administrator; the operator only compares
)

// BillingField is a field of LNamespace.spec.billing that can be required.
type BillingField string

// The fields that can be required.
const (
	RequireCostCenter BillingField = "costCenter"
	RequireOwner      BillingField = "owner"
)

// BillingBatch bounds one append to the warehouse.
type BillingBatch struct {
	// MaxRows is at least 1. Default 500.
	MaxRows int `json:"maxRows"`

	// MaxBytes is at least 1. Default 1Mi.
	MaxBytes resource.Quantity `json:"maxBytes"`
}

// BillingNamespaceLabels are keys of labels, for tools that read labels of namespaces and no ledger, such as OpenCost.
type BillingNamespaceLabels struct {
	// CostCenter is the key that says spec.billing.costCenter. Default none: no such label is written.
	CostCenter string `json:"costCenter"`

	// Owner is the key that says spec.billing.owner. Default none: no such label is written.
	Owner string `json:"owner"`
}

// Has reports whether key is one of them.
func (l BillingNamespaceLabels) Has(key string) bool {
	return key != "" && (key == l.CostCenter || key == l.Owner)
}

// BillingSQLite configures driver sqlite.
type BillingSQLite struct {
	// Path of the database file. Default /var/lib/warren/billing.db.
	Path string `json:"path"`
}

// BillingPostgres configures driver postgres.
type BillingPostgres struct {
	// DSNFile holds the data source name; a file, so that no secret stands in the configuration. No default; required.
	DSNFile string `json:"dsnFile"`
}

// BillingBigQuery configures driver bigquery.
type BillingBigQuery struct {
	// Project runs the statements, pays for them, and has the dataset. No default; required.
	Project string `json:"project"`

	// Dataset has the table and the view. It must be there. No default; required.
	Dataset string `json:"dataset"`

	// Location of the dataset, such as EU or europe-west1. No default; required.
	Location string `json:"location"`

	// CredentialsFile holds a key, or describes how an identity is federated. Default none: what the environment gives, such as GKE's
	// workload identity.
	CredentialsFile string `json:"credentialsFile"`

	// Endpoint is the address of the API where it isn't the public one, such as that of Private Service Connect. It begins with
	// https://, or with http:// and a loopback IP address. A name such as localhost is not enough, because it may resolve to any address.
	// Default none.
	Endpoint string `json:"endpoint"`

	// StatementTimeout is how long one statement may take, at least 1s. Default 2m.
	StatementTimeout metav1.Duration `json:"statementTimeout"`

	// MaximumBytesBilled is what one statement may read, at least 10Mi, the least that is billed. Default 1Gi.
	MaximumBytesBilled resource.Quantity `json:"maximumBytesBilled"`
}

// BillingDefault fills the empty billing fields of a new LNamespace, if it is the first default that matches the creator and agrees with
// the fields that are set. It matches User, a member of Group, or anybody if both are empty.
type BillingDefault struct {
	User  string `json:"user,omitempty"`
	Group string `json:"group,omitempty"`

	// What is filled in, bounded as in LNamespace.spec.billing: costCenter, owner and labels stand beside user and group.
	tenancy.Billing `json:",inline"`
}
