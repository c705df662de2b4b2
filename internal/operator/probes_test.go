package operator

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

func TestProbes(t *testing.T) {
	notes, ready := []string{}, error(nil)
	m := &Manager{live: map[string]healthz.Checker{"ping": healthz.Ping}, ready: map[string]healthz.Checker{"ping": healthz.Ping}}
	if err := m.AddReadyzCheck("synced", func(*http.Request) error { return ready }); err != nil {
		t.Fatal(err)
	}
	m.AddNotes(func() []string { return notes })
	handler := m.serveProbes()
	for name, c := range map[string]struct {
		notes []string
		ready error
		path  string
		code  int
		want  string
	}{
		"ready":                    {nil, nil, "/readyz", 200, "ok"},
		"ready, verbose":           {nil, nil, "/readyz?verbose", 200, "[+]ping ok\n[+]synced ok\nhealthz check passed\n"},
		"a note keeps nobody away": {[]string{"a", "b"}, nil, "/readyz", 200, "ok"},
		"a note is told": {[]string{"a", "b"}, nil, "/readyz?verbose", 200,
			"[+]ping ok\n[+]synced ok\nhealthz check passed\n[!]a\n[!]b\n"},
		"not ready": {[]string{"a"}, errors.New("secret reason"), "/readyz", 500,
			"[+]ping ok\n[-]synced failed: reason withheld\nhealthz check failed\n"},
		"one check":              {nil, nil, "/readyz/synced", 200, "ok"},
		"an unknown check":       {nil, nil, "/readyz/other", 404, "404 page not found\n"},
		"alive though not ready": {[]string{"a"}, errors.New("x"), "/healthz?verbose", 200, "[+]ping ok\nhealthz check passed\n"},
	} {
		notes, ready = c.notes, c.ready
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, c.path, nil))
		if answer.Code != c.code || answer.Body.String() != c.want {
			t.Errorf("%s: got %d %q, want %d %q", name, answer.Code, answer.Body, c.code, c.want)
		}
	}
	if err := m.AddReadyzCheck("synced", healthz.Ping); err == nil {
		t.Error("a second check of that name is accepted")
	}
	if err := m.AddHealthzCheck("synced", healthz.Ping); err != nil {
		t.Errorf("a check of that name for another probe: %v", err)
	}
}

// started is a manager that counts how often it is started.
type started struct {
	ctrl.Manager
	times int
}

func (s *started) Start(context.Context) error {
	s.times++
	return nil
}

// controller-runtime starts every Runnable even if its context is done. Without a check, a process that ends while its configuration file
// is held back would record that file as accepted.
func TestStartAfterAcceptance(t *testing.T) {
	for name, c := range map[string]struct {
		accepts bool
		want    int
	}{
		"accepted": {true, 1},
		"SUB-F10 a process that ends while its file is held back starts nothing, so the record stays": {false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			mgr := &started{}
			m := withProbes(mgr, "0")
			m.beforeStart = func(ctx context.Context) {
				if !c.accepts {
					end()
					<-ctx.Done()
				}
			}
			if err := m.Start(ctx); err != nil || mgr.times != c.want {
				t.Errorf("%v, started %d times, want %d", err, mgr.times, c.want)
			}
		})
	}
}
