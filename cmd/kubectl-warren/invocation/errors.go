package invocation

import "strings"

// Problems is an error of several sentences, one line each.
type Problems []string

func (p Problems) Error() string { return strings.Join(p, "\n") }

// StatusError is an error that ends the program with a status of its own.
type StatusError struct {
	Status int
	Err    error
}

// Error describes what happened.
func (e StatusError) Error() string { return e.Err.Error() }

// Unwrap returns the cause, for errors.Is and errors.As.
func (e StatusError) Unwrap() error { return e.Err }
