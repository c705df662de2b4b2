package v1alpha1_test

import (
	"strings"
	"testing"
)

func TestValidateBilling(t *testing.T) {
	refusals{
		"BillingDriver": {
			reason: "an unknown one asks for nothing else",
			body:   "billing: {driver: mysql, schema: create, table: a-b}\n",
			want: []string{
				`billing.driver: Invalid value: "mysql": must be none, sqlite or postgres`,
				`billing.table: Invalid value: "a-b": must match ^[A-Za-z_][A-Za-z0-9_]{0,62}$`,
				`billing.schema: Invalid value: "create": must be manage or verify`,
			},
		},
		"BillingSQLite": {
			reason: "sqlite is complete by default; it needs no clusterID and no outbox",
			body:   "billing: {driver: sqlite, outbox: {path: \"\"}}\n",
		},
		"BillingSQLiteNoPath": {
			reason: "an empty path is none",
			body:   "billing: {driver: sqlite, sqlite: {path: \"\"}}\n",
			want:   []string{`billing.sqlite.path: Required value: needed with billing.driver sqlite`},
		},
		"BillingPostgres": {
			reason: "what the driver needs is named",
			body:   "billing: {driver: postgres, outbox: {path: \"\"}}\n",
			want: []string{
				`billing.postgres.dsnFile: Required value: needed with billing.driver postgres`,
				`billing.clusterID: Required value: needed with billing.driver postgres`,
				`billing.outbox.path: Required value: needed with billing.driver postgres`,
			},
		},
		"BillingBigQuery": {
			reason: "a driver that this version lacks is no driver, and a section of it no section",
			body:   "billing: {driver: bigquery, clusterID: c}\n",
			want: []string{
				`billing.driver: Invalid value: "bigquery": must be none, sqlite or postgres`,
			},
		},
		"BillingSizes": {
			reason: "each just outside its range, whatever the driver",
			body:   "billing: {flushInterval: 999ms, resyncInterval: 59s, batch: {maxRows: 0, maxBytes: 500m}, outbox: {maxRows: 0}}\n",
			want: []string{
				`billing.flushInterval: Invalid value: "999ms": must be at least 1s`,
				`billing.resyncInterval: Invalid value: "59s": must be at least 1m0s`,
				`billing.batch.maxRows: Invalid value: 0: must be at least 1`,
				`billing.batch.maxBytes: Invalid value: "500m": must be a whole number of bytes, at least 1`,
				`billing.outbox.maxRows: Invalid value: 0: must be at least 1`,
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
