package operator

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Manager is controller-runtime's Manager with probes that show more: /readyz?verbose also shows notes, sentences about trouble that must
// not make the process unready.
type Manager struct {
	ctrl.Manager
	live, ready map[string]healthz.Checker
	notes       []func() []string
	probes      *manager.Server // nil: no probes are served
	// beforeStart is called once the probes are served. Everything else starts when beforeStart returns, unless the context is done by then.
	beforeStart func(context.Context)
}

// withProbes serves /healthz and /readyz at an address; "0" for nowhere. mgr itself must serve no probes.
func withProbes(mgr ctrl.Manager, address string) *Manager {
	m := &Manager{Manager: mgr, live: map[string]healthz.Checker{"ping": healthz.Ping},
		ready: map[string]healthz.Checker{"ping": healthz.Ping}}
	if address != "0" {
		m.probes = &manager.Server{Name: "health probe", Server: &http.Server{
			Addr: address, Handler: m.serveProbes(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 90 * time.Second,
		}}
	}
	return m
}

// Start implements ctrl.Manager.
func (m *Manager) Start(ctx context.Context) error {
	running, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithCancel(ctx)
	if m.probes != nil {
		running.Go(func() error { return m.probes.Start(ctx) })
	}
	running.Go(func() error {
		defer cancel()
		m.beforeStart(ctx)
		if ctx.Err() != nil {
			return nil // controller-runtime would start every Runnable for a moment, although this process's file may not be in force
		}
		return startUntilEnd(ctx, m.Manager.Start)
	})
	return running.Wait()
}

// AddHealthzCheck implements ctrl.Manager. It is called before Start.
func (m *Manager) AddHealthzCheck(name string, check healthz.Checker) error {
	return addCheck(m.live, "health", name, check)
}

// AddReadyzCheck implements ctrl.Manager. It is called before Start.
func (m *Manager) AddReadyzCheck(name string, check healthz.Checker) error {
	return addCheck(m.ready, "readiness", name, check)
}

func addCheck(checks map[string]healthz.Checker, kind, name string, check healthz.Checker) error {
	if checks[name] != nil {
		return fmt.Errorf("two %s checks are called %q", kind, name)
	}
	checks[name] = check
	return nil
}

// AddNotes makes /readyz?verbose show the sentences that notes returns. Call it before Start; the server may call notes at any time.
func (m *Manager) AddNotes(notes func() []string) { m.notes = append(m.notes, notes) }

func (m *Manager) serveProbes() http.Handler {
	mux := http.NewServeMux()
	for path, checks := range map[string]map[string]healthz.Checker{"/healthz": m.live, "/readyz": m.ready} {
		handler := http.StripPrefix(path, &healthz.Handler{Checks: checks})
		mux.Handle(path+"/", handler)
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			handler.ServeHTTP(w, r)
			if _, verbose := r.URL.Query()["verbose"]; !verbose || path != "/readyz" {
				return
			}
			for _, notes := range m.notes {
				for _, note := range notes() {
					fmt.Fprintf(w, "[!]%s\n", note)
				}
			}
		})
	}
	return mux
}
