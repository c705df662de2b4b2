package copies_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/warren-tenancy/warren/internal/copies"
)

// PROP-P12
func TestFailedRequestsAreLoggedSparsely(t *testing.T) {
	var failed copies.FailedRequests
	begin := time.Now()
	add := func(after time.Duration) string {
		line, ok := failed.Add(begin.Add(after), copies.Slot{Name: "s"}, errors.New("reset"))
		if !ok {
			return ""
		}
		return fmt.Sprintf("%s: %s: %v", line.Slot.Name, line.Message, line.Err)
	}
	for i, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, "s: a request failed; it is tried again: reset"},
		{time.Second, ""},
		{9 * time.Second, ""},
		{10 * time.Second, "s: a request failed; it is tried again (since the last such line, 2 others failed): reset"},
		{30 * time.Second, "s: a request failed; it is tried again: reset"},
	} {
		if got := add(step.after); got != step.want {
			t.Errorf("%d: got %q, want %q", i, got, step.want)
		}
	}
}
