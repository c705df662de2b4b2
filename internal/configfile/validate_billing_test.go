package configfile_test

import (
	"strings"
	"testing"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/configfile"
)

func TestValidateBilling(t *testing.T) {
	refusals{
		"BillingDriver": {
			reason: "an unknown one asks for nothing else",
			body:   "billing: {driver: mysql, schema: create, table: a-b}\n",
			want: []string{
				`billing.driver: Invalid value: "mysql": must be none, sqlite, postgres or bigquery`,
				`billing.table: Invalid value: "a-b": must match ^[A-Za-z_][A-Za-z0-9_]{0,62}$`,
				`billing.schema: Invalid value: "create": must be manage or verify`,
			},
		},
		"BillingSQLite": {
			reason: "sqlite is complete by default; it needs no clusterID",
			body:   "billing: {driver: sqlite}\n",
		},
		"BILL-71 a key that is no label key, or belongs to Kubernetes, is refused with its path": {
			reason: "each is named; without a driver they are of use",
			body:   "billing: {namespaceLabels: {costCenter: pod-security.kubernetes.io/enforce, owner: \"a b\"}}\n",
			want: []string{
				`billing.namespaceLabels.costCenter: Forbidden: "pod-security.kubernetes.io/enforce" belongs to Kubernetes: choose a key in a ` +
					`domain of yours`,
				`billing.namespaceLabels.owner: Invalid value: "a b": must be the key of a label, such as example.com/cost-center: name part ` +
					`must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. ` +
					`'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
			},
		},
		"BILL-71 a key that belongs to the operator is refused with its path": {
			reason: "in its domain, and below it",
			body:   "billing: {namespaceLabels: {costCenter: tenancy.warren.dev/parent, owner: x.tree.tenancy.warren.dev/depth}}\n",
			want: []string{
				`billing.namespaceLabels.costCenter: Forbidden: "tenancy.warren.dev/parent" belongs to the operator: choose a key in a domain of yours`,
				`billing.namespaceLabels.owner: Forbidden: "x.tree.tenancy.warren.dev/depth" belongs to the operator: choose a key in a domain ` +
					`of yours`,
			},
		},
		"BILL-71 the same key for costCenter and owner is refused, with the path of owner": {
			reason: "two values don't fit",
			body:   "billing: {namespaceLabels: {costCenter: team, owner: team}}\n",
			want:   []string{`billing.namespaceLabels.owner: Duplicate value: "team"`},
		},
		"BILL-71 other keys are accepted, with a domain or without": {
			reason: "any other, with a domain or without",
			body:   "billing: {namespaceLabels: {costCenter: finance.example.com/cost-center, owner: owner}}\n",
		},
		"BillingSQLiteNoPath": {
			reason: "an empty path is none",
			body:   "billing: {driver: sqlite, sqlite: {path: \"\"}}\n",
			want:   []string{`billing.sqlite.path: Required value: needed with billing.driver sqlite`},
		},
		"BillingPostgres": {
			reason: "what the driver needs is named",
			body:   "billing: {driver: postgres}\n",
			want: []string{
				`billing.postgres.dsnFile: Required value: needed with billing.driver postgres`,
				`billing.clusterID: Required value: needed with billing.driver postgres`,
			},
		},
		"BillingBigQuery": {
			reason: "what the driver needs is named",
			body:   "billing: {driver: bigquery}\n",
			want: []string{
				`billing.bigquery.project: Required value: needed with billing.driver bigquery`,
				`billing.bigquery.dataset: Required value: needed with billing.driver bigquery`,
				`billing.bigquery.location: Required value: needed with billing.driver bigquery`,
				`billing.clusterID: Required value: needed with billing.driver bigquery`,
			},
		},
		"BillingBigQueryWhole": {
			reason: "a project of a domain, an endpoint of one's own",
			body: "billing: {driver: bigquery, clusterID: c, bigquery: {project: \"example.com:finops\", dataset: finops_1, location: " +
				"europe-west1, " +
				"endpoint: \"https://bigquery-warren.p.googleapis.com/bigquery/v2/\"}}\n",
		},
		"BillingBigQueryWrong": {
			reason: "what becomes SQL or an address, and each limit just outside its range, whatever the driver",
			body: "billing: {bigquery: {project: \"a`b\", dataset: fin-ops, location: \"EU/x\", endpoint: \"http://bigquery.example.com/\", " +
				"statementTimeout: 999ms, maximumBytesBilled: 10485759}}\n",
			want: []string{
				"billing.bigquery.project: Invalid value: \"a`b\": must match ^[a-z][a-z0-9.:-]*[a-z0-9]$",
				`billing.bigquery.dataset: Invalid value: "fin-ops": must match ^[A-Za-z0-9_]+$`,
				`billing.bigquery.location: Invalid value: "EU/x": must match ^[A-Za-z][A-Za-z0-9-]*$`,
				`billing.bigquery.endpoint: Invalid value: "http://bigquery.example.com/": must begin with https://, because the exporter ` +
					`sends tokens to it; http:// is allowed only with a loopback IP address such as 127.0.0.1, not with a name such as localhost`,
				`billing.bigquery.statementTimeout: Invalid value: "999ms": must be at least 1s`,
				`billing.bigquery.maximumBytesBilled: Invalid value: "10485759": must be a whole number of bytes, at least 10485760`,
			},
		},
		"BillingBigQueryLoopback": {
			reason: "what is sent to a loopback IP address stays on the machine",
			body:   "billing: {bigquery: {endpoint: \"http://[::1]:9050/\"}}\n",
		},
		"BillingBigQueryLocalhost": {
			reason: "a name may resolve to any address, localhost too",
			body:   "billing: {bigquery: {endpoint: \"http://localhost:9050/\"}}\n",
			want: []string{
				`billing.bigquery.endpoint: Invalid value: "http://localhost:9050/": must begin with https://, because the exporter ` +
					`sends tokens to it; http:// is allowed only with a loopback IP address such as 127.0.0.1, not with a name such as localhost`,
			},
		},
		"BillingSizes": {
			reason: "each just outside its range, whatever the driver",
			body:   "billing: {flushInterval: 999ms, resyncInterval: 59s, batch: {maxRows: 0, maxBytes: 500m}}\n",
			want: []string{
				`billing.flushInterval: Invalid value: "999ms": must be at least 1s`,
				`billing.resyncInterval: Invalid value: "59s": must be at least 1m0s`,
				`billing.batch.maxRows: Invalid value: 0: must be at least 1`,
				`billing.batch.maxBytes: Invalid value: "500m": must be a whole number of bytes, at least 1`,
			},
		},
		"BillingDefaults": {
			reason: "user or group or neither; something to fill in; bounded as in an LNamespace",
			body: `billing:
  defaults: [{user: alice, group: devs, owner: o}, {user: bob}, {costCenter: ` + strings.Repeat("c", 65) + `, owner: o}]
  required: [costCenter, label]
  costCenterPattern: "("
`,
			want: []string{
				`billing.defaults[0]: Forbidden: names a user and a group: write two entries`,
				`billing.defaults[1]: Required value: at least one of costCenter, owner and labels`,
				`billing.defaults[2].costCenter: Invalid value: "` + strings.Repeat("c", 65) + `": must have at most 64 characters`,
				`billing.required[1]: Invalid value: "label": must be costCenter or owner`,
				"billing.costCenterPattern: Invalid value: \"(\": must be a Go regexp: error parsing regexp: missing closing ): `(`",
			},
		},
	}.check(t)
}

func TestBillingSample(t *testing.T) {
	t.Run("BILL-73 config/samples/billing/config.yaml is accepted, with driver sqlite and keys for cost center and owner", func(t *testing.T) {
		c, err := configfile.Load("../../config/samples/billing/config.yaml")
		if err != nil {
			t.Fatal(err)
		}
		b := c.Billing
		if b.Driver != config.DriverSQLite || b.NamespaceLabels.CostCenter == "" || b.NamespaceLabels.Owner == "" {
			t.Errorf("%+v", b)
		}
	})
}
