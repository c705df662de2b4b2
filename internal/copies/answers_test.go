package copies_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/warren-tenancy/warren/internal/copies"
)

func TestFailedRequests(t *testing.T) {
	t.Run("PROP-P12 of requests of copies that fail within 9 s, the first is logged; the next line, after 10 s, has \"since the last such "+
		"line, 2 others failed\"", func(t *testing.T) {
		var failed copies.FailedRequests
		begin := time.Now()
		for _, step := range []struct {
			after time.Duration
			want  string
		}{
			{0, "s: a request failed; it is tried again: reset"},
			{time.Second, ""},
			{9 * time.Second, ""},
			{10 * time.Second, "s: a request failed; it is tried again (since the last such line, 2 others failed): reset"},
			{30 * time.Second, "s: a request failed; it is tried again: reset"},
		} {
			got := ""
			if line, ok := failed.Add(begin.Add(step.after), copies.Slot{Name: "s"}, errors.New("reset")); ok {
				got = fmt.Sprintf("%s: %s: %v", line.Slot.Name, line.Message, line.Err)
			}
			if got != step.want {
				t.Errorf("after %s: got %q, want %q", step.after, got, step.want)
			}
		}
	})
}
