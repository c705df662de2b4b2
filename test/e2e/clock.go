//go:build linux

package main

import (
	"fmt"
	"time"
)

// clock counts from the beginning of the run, in both of its processes.
type clock struct{ began time.Time }

func parseClock(text string) (clock, error) {
	began, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return clock{}, fmt.Errorf("reading the beginning of the run: %w", err)
	}
	return clock{began}, nil
}

// String is what parseClock reads.
func (c clock) String() string { return c.began.Format(time.RFC3339Nano) }

// printSeen prints what was seen, with the time.
func (c clock) printSeen(format string, args ...any) {
	fmt.Printf("%7.1f s  %s\n", time.Since(c.began).Seconds(), fmt.Sprintf(format, args...))
}
