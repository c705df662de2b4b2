package connection

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// If the context of a write is canceled while it is under way, the write may continue for a while. A read, and a write whose deadline has
// passed, may not.
func TestFinishWrites(t *testing.T) {
	for name, tc := range map[string]struct {
		method   string
		grace    time.Duration
		deadline bool
		want     error
	}{
		"a write":                     {method: http.MethodPost, grace: time.Minute},
		"a write that takes too long": {method: http.MethodPost, want: context.Canceled},
		"a write whose time is over":  {method: http.MethodPost, grace: time.Minute, deadline: true, want: context.Canceled},
		"a read":                      {method: http.MethodGet, grace: time.Minute, want: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			arrived, goOn := make(chan struct{}), make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				close(arrived)
				select {
				case <-goOn:
					_, _ = io.WriteString(w, "done")
				case <-r.Context().Done():
				}
			}))
			defer server.Close()
			ctx, cancel := context.WithCancel(t.Context())
			if tc.deadline {
				ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
			}
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, tc.method, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				<-arrived
				if !tc.deadline {
					cancel()
				}
				if tc.want == nil {
					close(goOn)
				}
			}()
			answer, err := finisher{http.DefaultTransport, tc.grace}.RoundTrip(r)
			if !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if err != nil {
				return
			}
			text, err := io.ReadAll(answer.Body)
			if string(text) != "done" || err != nil || answer.Body.Close() != nil {
				t.Errorf("got %q, %v", text, err)
			}
		})
	}
}
