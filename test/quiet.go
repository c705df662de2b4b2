// Package test has what all tests share: how long "nothing happens" is watched, and how a slow webhook is waited for.
package test

import (
	"fmt"
	"os"
	"time"
)

// window is how long "nothing happens" is watched unless TEST_WINDOW says otherwise.
const window = 2 * time.Second

// Quiet stands for "nothing happens for d" of the specification: how long to look, for Consistently(…).WithTimeout(test.Quiet(d)).
// TEST_WINDOW limits it: if it is unset, to 2 s; if it is a duration, to that; "full" keeps d. A wrong TEST_WINDOW panics, because a test
// that looks too briefly passes by mistake. Quiet is not for how long a fault lasts, nor for a time in which at most n requests are
// allowed: with a shorter time, a case would pass that should fail.
func Quiet(d time.Duration) time.Duration {
	switch text := os.Getenv("TEST_WINDOW"); text {
	case "":
		return min(d, window)
	case "full":
		return d
	default:
		limit, err := time.ParseDuration(text)
		if err != nil || limit <= 0 {
			panic(fmt.Sprintf("TEST_WINDOW=%q is neither full nor a duration: set it to something like 5s, or unset it", text))
		}
		return min(d, limit)
	}
}

// IsLong reports whether the tests run with TEST_WINDOW=full, as `make test-long` runs them. A case that takes longer than `make test`
// allows names `make test-long` in its row. It counts as passed only from such a run.
func IsLong() bool { return os.Getenv("TEST_WINDOW") == "full" }

// Many is the size of a case: many in `make test-long`, few in other runs.
func Many(many, few int) int {
	if IsLong() {
		return many
	}
	return few
}
