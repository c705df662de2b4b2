package bigquery

import (
	"errors"
	"net/http"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/bigquery"
	"google.golang.org/api/googleapi"
)

// Error is an error that BigQuery answered, or the reason why no request could be made.
type Error struct {
	reason string
	err    error
}

// reasonCredentials is a reason of this package, not of BigQuery: there are no credentials, or no token was given for
// them.
const reasonCredentials = "credentials"

// reasonReadOnly is a reason of this package, too: the database is open for reading alone, and the statement is no query.
const reasonReadOnly = "readOnly"

// Reason is a word of https://cloud.google.com/bigquery/docs/error-messages, "credentials" or "readOnly".
func (e *Error) Reason() string { return e.reason }

func (e *Error) Error() string {
	if e.reason == "bytesBilledLimitExceeded" {
		return e.err.Error() + "; raise billing.bigquery.maximumBytesBilled, or ask for less"
	}
	return e.err.Error()
}

// Unwrap returns the client's error.
func (e *Error) Unwrap() error { return e.err }

func (e *Error) aboutCredentials() bool {
	return e.reason == reasonCredentials || statusOf(e.err) == http.StatusUnauthorized
}

// describeError returns an *Error with BigQuery's reason if BigQuery answered, or with reasonCredentials if no token
// was given. Any other error is returned as it is, such as a failed connection.
func describeError(err error) error {
	var answer *googleapi.Error
	var failed *bigquery.Error
	var own *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return err
	case errors.As(err, &failed):
		return &Error{failed.Reason, errors.New(failed.Message)}
	case errors.As(err, &answer):
		if len(answer.Errors) > 0 && answer.Errors[0].Reason != "" {
			return &Error{answer.Errors[0].Reason, err}
		}
		return &Error{reasonOf(answer.Code), err}
	case isCredentials(err):
		return &Error{reasonCredentials, err}
	}
	return err
}

// reasonOf returns the reason that fits an HTTP status, for an answer that has no reason, such as one of a proxy.
func reasonOf(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authError"
	case http.StatusForbidden:
		return "accessDenied"
	case http.StatusNotFound:
		return "notFound"
	case http.StatusTooManyRequests:
		return "rateLimitExceeded"
	}
	return "backendError"
}

// isCredentials reports whether the credentials were refused for good, so that a retry gets no token either.
func isCredentials(err error) bool {
	var token *auth.Error
	return errors.As(err, &token) && !token.Temporary()
}
