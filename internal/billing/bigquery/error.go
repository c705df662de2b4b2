package bigquery

import (
	"errors"
	"net/http"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/bigquery"
	"google.golang.org/api/googleapi"
)

// Error is what BigQuery answered, or why it could not be asked.
type Error struct {
	reason string
	err    error
}

// reasonCredentials is ours: there are none, or they are refused where tokens are given.
const reasonCredentials = "credentials"

// Reason is a word of https://cloud.google.com/bigquery/docs/error-messages, or "credentials".
func (e *Error) Reason() string { return e.reason }

func (e *Error) Error() string {
	if e.reason == "bytesBilledLimitExceeded" {
		return e.err.Error() + "; raise billing.bigquery.maximumBytesBilled, or ask for less"
	}
	return e.err.Error()
}

// Unwrap returns what the client said.
func (e *Error) Unwrap() error { return e.err }

func (e *Error) aboutCredentials() bool {
	return e.reason == reasonCredentials || statusOf(e.err) == http.StatusUnauthorized
}

// explain gives an error its reason where BigQuery gave one. A connection that fails has none.
func explain(err error) error {
	var answer *googleapi.Error
	var failed *bigquery.Error
	switch {
	case err == nil:
		return nil
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

// reasonOf stands for the reason where an answer has none, such as one of a proxy.
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

// isCredentials: no token was given, and none will be.
func isCredentials(err error) bool {
	var token *auth.Error
	return errors.As(err, &token) && !token.Temporary()
}
