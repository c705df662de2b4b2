//go:build race

package simulation

// usualHistories is smaller with the race detector, which makes them ten times as slow, and finds little in what runs on one goroutine.
const usualHistories = 1_000
