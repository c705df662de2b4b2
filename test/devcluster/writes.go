package devcluster

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// Mark returns the present place in the audit log. Requests that arrived earlier are before it, also those that are answered later: a test
// may have seen their effect before.
func (w *World) Mark(ctx context.Context) (audit.Position, error) {
	now := time.Now()
	end, err := audit.End(w.AuditLog())
	if err != nil {
		return end, err
	}
	_, end, err = w.readAudit(ctx, end)
	end.Since = now
	return end, err
}

// Requests returns all requests that were answered since a mark.
func (w *World) Requests(ctx context.Context, since audit.Position) ([]audit.Request, error) {
	requests, _, err := w.readAudit(ctx, since)
	return requests, err
}

// Writes returns the operator's writes since a mark, whatever the answer: without Leases and Events, which don't count
// by the specification, and without reviews, which store nothing.
func (w *World) Writes(ctx context.Context, since audit.Position) ([]audit.Request, error) {
	requests, err := w.Requests(ctx, since)
	if err != nil {
		return nil, err
	}
	return audit.Writes(requests, controlplane.Operator), nil
}

// readAudit sends a request that can be recognized by its address, and reads until the log has it: then the log has everything that was
// answered earlier. These requests themselves are left out.
func (w *World) readAudit(ctx context.Context, from audit.Position) ([]audit.Request, audit.Position, error) {
	const parameter = "warren-mark="
	mark := parameter + rand.Text()
	if err := w.get(ctx, "/version?"+mark); err != nil {
		return nil, from, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var all []audit.Request
	for {
		requests, next, err := audit.Read(w.AuditLog(), from)
		if err != nil {
			return nil, from, err
		}
		from = next
		all = append(all, requests...)
		if slices.ContainsFunc(requests, func(r audit.Request) bool { return strings.Contains(r.URI, mark) }) {
			return slices.DeleteFunc(all, func(r audit.Request) bool { return strings.Contains(r.URI, parameter) }), from, nil
		}
		select {
		case <-ctx.Done():
			return nil, from, fmt.Errorf("waiting for the audit log %s: %w", w.AuditLog(), ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (w *World) get(ctx context.Context, path string) error {
	config := w.Config(controlplane.Admin)
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
	if err != nil {
		return err
	}
	answer, err := c.Do(req)
	if err != nil {
		return fmt.Errorf("marking a place in the audit log: %w", err)
	}
	_ = answer.Body.Close()
	return nil
}
