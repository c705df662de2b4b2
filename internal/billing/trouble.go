package billing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Trouble is the class of an error of the warehouse, by what must happen before the events can be stored. Its values
// are the reasons of condition BillingExported, except Quota, which the condition shows as WarehouseUnavailable.
type Trouble string

const (
	// Unavailable passes without an administrator: the same events are sent again.
	Unavailable Trouble = "WarehouseUnavailable"
	// Quota passes without an administrator, but not within minutes.
	Quota Trouble = "QuotaExceeded"
	// Denied needs an administrator: a right, a credential, a database or dataset is missing.
	Denied Trouble = "AccessDenied"
	// Mismatch needs an administrator: the table's columns are not those that they should be.
	Mismatch Trouble = "SchemaMismatch"
	// InvalidData is the fault of a row: the other rows of its batch can be stored.
	InvalidData Trouble = "InvalidData"
)

// Pause returns how long nothing is sent after such an error. Zero means until the next flush.
func (t Trouble) Pause() time.Duration {
	switch t {
	case Denied, Mismatch:
		return 5 * time.Minute
	case Quota:
		return 10 * time.Minute
	default:
		return 0
	}
}

// SchemaError lists all that is wrong with the table or its view.
type SchemaError struct {
	// Table is the name of the table or view.
	Table string
	// Problems has a sentence for each column that is wrong, or one for the table or view as a whole.
	Problems []string
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("billing table %s: %s", e.Table, strings.Join(e.Problems, "; "))
}

// Trouble returns the class of an error of this store; Unavailable for an unknown error, because that may pass.
func (s *Store) Trouble(err error) Trouble {
	var schema *SchemaError
	switch {
	case errors.As(err, &schema):
		return Mismatch
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Unavailable
	case certificateAdvice(err) != "": // a wrong certificate doesn't become right by itself
		return Denied
	}
	return s.dialect.trouble(err)
}

// IsRefusedWrite reports whether the engine refused a statement because the database is open for reading alone.
func (s *Store) IsRefusedWrite(err error) bool { return s.dialect.refusedWrite(err) }

// postgresTrouble decides by the SQLSTATE, whose first two characters are its class:
// https://www.postgresql.org/docs/current/errcodes-appendix.html
func postgresTrouble(err error) Trouble {
	var coded interface{ SQLState() string }
	if !errors.As(err, &coded) {
		return Unavailable
	}
	switch state := coded.SQLState(); state {
	case "42501", "3D000": // insufficient_privilege, invalid_catalog_name
		return Denied
	case "23502", "55000": // not_null_violation, object_not_in_prerequisite_state: a column, or a view, that we don't know
		return Mismatch
	case "54000": // program_limit_exceeded: a value is too large
		return InvalidData
	default:
		if len(state) < 2 {
			return Unavailable
		}
		switch state[:2] {
		case "28": // invalid_authorization_specification
			return Denied
		case "3F", "42": // invalid_schema_name; syntax error or access rule violation
			return Mismatch
		case "22", "23", "44": // data exception; integrity constraint violation; with check option violation
			return InvalidData
		}
	}
	return Unavailable
}

// sqliteTrouble decides by the result code, whose lowest byte is its class: https://www.sqlite.org/rescode.html
func sqliteTrouble(err error) Trouble {
	var coded interface{ Code() int }
	if !errors.As(err, &coded) {
		return Unavailable
	}
	switch coded.Code() & 0xff {
	case 3, 8, 23: // PERM, READONLY, AUTH
		return Denied
	case 18, 19, 20: // TOOBIG, CONSTRAINT, MISMATCH
		if coded.Code() == 1299 { // CONSTRAINT_NOTNULL: a column that we don't know
			return Mismatch
		}
		return InvalidData
	case 1: // ERROR is for all errors without a code of their own
		if strings.Contains(err.Error(), "malformed JSON") {
			return InvalidData
		}
		return Mismatch
	case 11, 17, 26: // CORRUPT, SCHEMA, NOTADB
		return Mismatch
	}
	return Unavailable
}

// bigqueryTrouble decides by the reason that the API or a job gives
// (https://cloud.google.com/bigquery/docs/error-messages), and for invalidQuery, which covers nearly all errors of a
// statement, by the message's text.
func bigqueryTrouble(err error) Trouble {
	var known interface{ Reason() string }
	if !errors.As(err, &known) {
		return Unavailable
	}
	said := err.Error()
	switch known.Reason() {
	case "accessDenied", "authError", "billingNotEnabled", "credentials", "required":
		return Denied
	case "notFound":
		if strings.Contains(said, "Not found: Table") {
			return Mismatch
		}
		return Denied // a project or dataset is missing, or this account may not see it
	case "quotaExceeded", "bytesBilledLimitExceeded":
		return Quota
	case "invalid", "invalidQuery", "badRequest", "duplicate":
		switch {
		case strings.Contains(said, "Could not serialize access"), strings.Contains(said, "Resources exceeded"):
			return Unavailable
		case containsAny(said, "Invalid timestamp", "Bad int64 value", "syntax error while parsing value", "Failed to parse"):
			return InvalidData
		}
		return Mismatch
	}
	return Unavailable
}

func containsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}
