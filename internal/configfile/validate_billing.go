package configfile

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	tenancy "github.com/warren-tenancy/warren/api/v1alpha1"
)

// TablePattern matches the names that a ledger's table may have.
var TablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

func validateBilling(at *field.Path, b *config.Billing) field.ErrorList {
	problems := checkOneOf(at.Child("driver"), b.Driver, config.DriverNone, config.DriverSQLite, config.DriverPostgres, config.DriverBigQuery)
	problems = append(problems, validateDriver(at, b)...)
	if !TablePattern.MatchString(b.Table) { // it becomes part of SQL statements
		problems = append(problems, field.Invalid(at.Child("table"), b.Table, "must match "+TablePattern.String()))
	}
	problems = append(problems, checkOneOf(at.Child("schema"), b.Schema, config.SchemaManage, config.SchemaVerify)...)
	problems = append(problems, validateBillingSizes(at, b)...)
	problems = append(problems, validateBigQuery(at.Child("bigquery"), &b.BigQuery)...)
	problems = append(problems, validateNamespaceLabels(at.Child("namespaceLabels"), b.NamespaceLabels)...)
	for i := range b.Defaults {
		problems = append(problems, validateBillingDefault(at.Child("defaults").Index(i), &b.Defaults[i])...)
	}
	for i, required := range b.Required {
		problems = append(problems, checkOneOf(at.Child("required").Index(i), required, config.RequireCostCenter, config.RequireOwner)...)
	}
	if _, err := regexp.Compile(b.CostCenterPattern); err != nil {
		problems = append(problems, invalidRegexpError(at.Child("costCenterPattern"), b.CostCenterPattern, err))
	}
	return problems
}

// validateDriver requires the settings that the chosen driver can't work without.
func validateDriver(at *field.Path, b *config.Billing) field.ErrorList {
	var problems field.ErrorList
	require := func(value, section, name string) {
		at := at
		if section != "" {
			at = at.Child(section)
		}
		if value == "" {
			problems = append(problems, field.Required(at.Child(name), fmt.Sprintf("needed with billing.driver %s", b.Driver)))
		}
	}
	switch b.Driver {
	case config.DriverSQLite: // SQLite has one replica and its own file, so it needs no clusterID
		require(b.SQLite.Path, "sqlite", "path")
		return problems
	case config.DriverPostgres:
		require(b.Postgres.DSNFile, "postgres", "dsnFile")
	case config.DriverBigQuery:
		require(b.BigQuery.Project, "bigquery", "project")
		require(b.BigQuery.Dataset, "bigquery", "dataset")
		require(b.BigQuery.Location, "bigquery", "location")
	default:
		return nil
	}
	require(b.ClusterID, "", "clusterID")
	return problems
}

// validateNamespaceLabels refuses keys that no label can have, keys of the operator or of Kubernetes, and one key for both labels.
func validateNamespaceLabels(at *field.Path, l config.BillingNamespaceLabels) field.ErrorList {
	var problems field.ErrorList
	for _, f := range []struct{ name, key string }{{"costCenter", l.CostCenter}, {"owner", l.Owner}} {
		domain, _, _ := strings.Cut(f.key, "/")
		switch wrong := validation.IsQualifiedName(f.key); {
		case f.key == "":
		case len(wrong) > 0:
			problems = append(problems, field.Invalid(at.Child(f.name), f.key,
				"must be the key of a label, such as example.com/cost-center: "+strings.Join(wrong, ", ")))
		case tenancy.IsReservedKey(f.key):
			problems = append(problems, field.Forbidden(at.Child(f.name),
				fmt.Sprintf("%q belongs to the operator: choose a key in a domain of yours", f.key)))
		case isKubernetesDomain(domain) && domain != f.key:
			problems = append(problems, field.Forbidden(at.Child(f.name),
				fmt.Sprintf("%q belongs to Kubernetes: choose a key in a domain of yours", f.key)))
		}
	}
	if l.CostCenter != "" && l.CostCenter == l.Owner {
		problems = append(problems, field.Duplicate(at.Child("owner"), l.Owner))
	}
	return problems
}

func isKubernetesDomain(domain string) bool {
	return slices.ContainsFunc([]string{"kubernetes.io", "k8s.io", "x-k8s.io"}, func(theirs string) bool {
		return domain == theirs || strings.HasSuffix(domain, "."+theirs)
	})
}

func validateBillingSizes(at *field.Path, b *config.Billing) field.ErrorList {
	problems := durationAtLeast(at.Child("flushInterval"), b.FlushInterval, time.Second)
	problems = append(problems, durationAtLeast(at.Child("resyncInterval"), b.ResyncInterval, time.Minute)...)
	problems = append(problems, checkAtLeast(at.Child("batch", "maxRows"), b.Batch.MaxRows, 1)...)
	return append(problems, checkBytesAtLeast(at.Child("batch", "maxBytes"), b.Batch.MaxBytes, 1)...)
}

// Patterns of billing.bigquery. Project and dataset become part of SQL statements, the location becomes part of addresses.
var (
	ProjectPattern  = regexp.MustCompile(`^[a-z][a-z0-9.:-]*[a-z0-9]$`)
	DatasetPattern  = regexp.MustCompile(`^[A-Za-z0-9_]+$`)
	LocationPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*$`)
)

func validateBigQuery(at *field.Path, b *config.BillingBigQuery) field.ErrorList {
	var problems field.ErrorList
	for _, f := range []struct {
		name, value string
		pattern     *regexp.Regexp
	}{
		{"project", b.Project, ProjectPattern}, {"dataset", b.Dataset, DatasetPattern}, {"location", b.Location, LocationPattern},
	} {
		if f.value != "" && !f.pattern.MatchString(f.value) {
			problems = append(problems, field.Invalid(at.Child(f.name), f.value, "must match "+f.pattern.String()))
		}
	}
	if b.Endpoint != "" && !isSafeAddress(b.Endpoint) {
		problems = append(problems, field.Invalid(at.Child("endpoint"), b.Endpoint,
			"must begin with https://, because the exporter sends tokens to it; http:// is allowed only "+
				"with a loopback IP address such as 127.0.0.1, not with a name such as localhost"))
	}
	problems = append(problems, durationAtLeast(at.Child("statementTimeout"), b.StatementTimeout, time.Second)...)
	return append(problems, checkBytesAtLeast(at.Child("maximumBytesBilled"), b.MaximumBytesBilled, 10<<20)...)
}

// isSafeAddress reports whether no other program between this process and address can read what is sent there. A name such as localhost
// may resolve to any address, so with http only a loopback IP address is safe.
func isSafeAddress(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && ip != nil && ip.IsLoopback()
}

// validateBillingDefault refuses an entry for both a user and a group, an empty one, and values that no LNamespace could hold.
func validateBillingDefault(at *field.Path, d *config.BillingDefault) field.ErrorList {
	var problems field.ErrorList
	if d.User != "" && d.Group != "" {
		problems = append(problems, field.Forbidden(at, "names a user and a group: write two entries"))
	}
	if d.CostCenter == "" && d.Owner == "" && len(d.Labels) == 0 {
		problems = append(problems, field.Required(at, "at least one of costCenter, owner and labels"))
	}
	if utf8.RuneCountInString(d.CostCenter) > 64 {
		problems = append(problems, field.Invalid(at.Child("costCenter"), d.CostCenter, "must have at most 64 characters"))
	}
	if utf8.RuneCountInString(d.Owner) > 256 {
		problems = append(problems, field.Invalid(at.Child("owner"), d.Owner, "must have at most 256 characters"))
	}
	if len(d.Labels) > 16 {
		problems = append(problems, field.Invalid(at.Child("labels"), len(d.Labels), "must have at most 16 keys"))
	}
	return problems
}
