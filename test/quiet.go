package test

import (
	"fmt"
	"os"
	"time"
)

// window is how long "nothing happens" is watched unless TEST_WINDOW says otherwise.
const window = 2 * time.Second

// Quiet stands for "nothing happens for d" of the specification: how long to look, for
// Consistently(…).WithTimeout(test.Quiet(d)). TEST_WINDOW shortens it: unset, to 2 s at most; a duration, to that at
// most; "full" keeps d. A wrong TEST_WINDOW panics, for a test that looks too briefly passes by mistake.
// Quiet is not for the length of a given fault, nor for the time in which at most n requests are allowed: a shorter one
// would pass where the case fails.
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

// IsLong reports whether the tests run with TEST_WINDOW=full, as `make test-long` has it. A case that gives more than
// `make test` has time for names `make test-long` in its row, and counts as passed only from such a run.
func IsLong() bool { return os.Getenv("TEST_WINDOW") == "full" }
