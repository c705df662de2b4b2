package v1alpha1

import (
	"fmt"
	"regexp"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

var tablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

func (b *Billing) validate(at *field.Path) field.ErrorList {
	problems := oneOf(at.Child("driver"), b.Driver, DriverNone, DriverSQLite, DriverPostgres)
	problems = append(problems, b.validateDriver(at)...)
	if !tablePattern.MatchString(b.Table) { // it becomes part of SQL statements
		problems = append(problems, field.Invalid(at.Child("table"), b.Table, "must match "+tablePattern.String()))
	}
	problems = append(problems, oneOf(at.Child("schema"), b.Schema, SchemaManage, SchemaVerify)...)
	problems = append(problems, b.validateSizes(at)...)
	for i, d := range b.Defaults {
		problems = append(problems, d.validate(at.Child("defaults").Index(i))...)
	}
	for i, required := range b.Required {
		problems = append(problems, oneOf(at.Child("required").Index(i), required, RequireCostCenter, RequireOwner)...)
	}
	if _, err := regexp.Compile(b.CostCenterPattern); err != nil {
		problems = append(problems, notARegexp(at.Child("costCenterPattern"), b.CostCenterPattern, err))
	}
	return problems
}

// validateDriver asks for what the chosen driver can't do without.
func (b *Billing) validateDriver(at *field.Path) field.ErrorList {
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
	case DriverSQLite: // one replica and its own file: no cluster to tell from another, no outbox
		require(b.SQLite.Path, "sqlite", "path")
		return problems
	case DriverPostgres:
		require(b.Postgres.DSNFile, "postgres", "dsnFile")
	default:
		return nil
	}
	require(b.ClusterID, "", "clusterID")
	require(b.Outbox.Path, "outbox", "path")
	return problems
}

func (b *Billing) validateSizes(at *field.Path) field.ErrorList {
	problems := durationAtLeast(at.Child("flushInterval"), b.FlushInterval, time.Second)
	problems = append(problems, durationAtLeast(at.Child("resyncInterval"), b.ResyncInterval, time.Minute)...)
	problems = append(problems, atLeast(at.Child("batch", "maxRows"), b.Batch.MaxRows, 1)...)
	problems = append(problems, bytesAtLeast(at.Child("batch", "maxBytes"), b.Batch.MaxBytes, 1)...)
	return append(problems, atLeast(at.Child("outbox", "maxRows"), b.Outbox.MaxRows, 1)...)
}

// validate refuses what no LNamespace could hold, or what nobody could match.
func (d *BillingDefault) validate(at *field.Path) field.ErrorList {
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
