//go:build !race

package simulation

// usualHistories is how many histories a plain go test runs.
const usualHistories = 5_000
