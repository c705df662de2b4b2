package test_test

import (
	"testing"
	"time"

	"github.com/warren-tenancy/warren/test"
)

func TestQuiet(t *testing.T) {
	for _, c := range []struct {
		window  string
		d, want time.Duration
	}{
		{"", 10 * time.Second, 2 * time.Second},
		{"", time.Second, time.Second},
		{"full", 10 * time.Second, 10 * time.Second},
		{"5s", 10 * time.Second, 5 * time.Second},
		{"500ms", time.Second, 500 * time.Millisecond},
		{"5s", time.Second, time.Second},
	} {
		t.Setenv("TEST_WINDOW", c.window)
		if got := test.Quiet(c.d); got != c.want {
			t.Errorf("TEST_WINDOW=%q: Quiet(%s) = %s, want %s", c.window, c.d, got, c.want)
		}
	}
}

func TestQuietPanicsOnNonsense(t *testing.T) {
	for _, window := range []string{"fulll", "-1s", "0s", "5"} {
		t.Setenv("TEST_WINDOW", window)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("TEST_WINDOW=%q was accepted", window)
				}
			}()
			test.Quiet(time.Second)
		}()
	}
}
