package access

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
	"github.com/warren-tenancy/warren/internal/requeue"
)

// unavailable explains, in messages, why mode Constrained can't be in force.
const unavailable = "the API server doesn't offer constrained impersonation, or has not answered whether it does; that needs " +
	"Kubernetes 1.36 with feature gate ConstrainedImpersonation"

// modes keeps the mode of sudo. Unless the configuration says Legacy, it asks the API server from time to time whether constrained
// impersonation works. It ends a switch of modes when the rules and bindings of both forms, legacy and constrained, are in place
// everywhere, or after SwitchLimit. It is a source of the access controller, which waits until the first mode is known.
type modes struct {
	requeue.Source[reconcile.Request] // requeues tenants

	objects *objectStore
	view    View
	config  Settings
	probe   func(context.Context) grants.Answer
	timing  Timing

	// begun is closed when the first mode is known.
	begun chan struct{}

	// Only look uses the three fields below. askAt is when the API server is asked again; zero before the first time.
	askAt time.Time
	// switchedSince is when a look first saw the switch that is under way; placedSince is since when its rules and bindings have been in
	// place everywhere. Both are zero otherwise.
	switchedSince, placedSince time.Time

	mu   sync.Mutex // guards mode
	mode grants.Mode
}

func newModes(r *Reconciler) *modes {
	return &modes{
		objects: r.objects, view: r.View, config: r.Config, probe: r.Probe, timing: r.Timing,
		begun: make(chan struct{}),
	}
}

func (m *modes) currentMode() grants.Mode {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mode
}

// setUpWith runs look with mgr.
func (m *modes) setUpWith(mgr ctrl.Manager) error {
	return (&requeue.Loop{Name: "access-modes", Look: m.look, RetryMin: m.timing.RetryMin, RetryMax: m.timing.RetryMax}).SetupWithManager(mgr)
}

// WaitForSync implements source.SyncingSource.
func (m *modes) WaitForSync(ctx context.Context) error {
	select {
	case <-m.begun:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// String names the source in errors of controller-runtime, which would else print all fields while they change.
func (m *modes) String() string { return "mode of sudo" }

// look asks the API server when that is due. Otherwise it advances a switch that is under way.
func (m *modes) look(ctx context.Context) (again time.Duration, err error) {
	first := m.askAt.IsZero()
	if first {
		if err := m.beginWithRules(ctx); err != nil {
			return 0, err
		}
	}
	before := m.currentMode()
	switch {
	case time.Now().After(m.askAt):
		m.askAt = time.Now().Add(m.answerTTL(m.askForMode(ctx)))
	case before.Switching():
		m.advanceSwitch(ctx, before)
	}
	now := m.currentMode()
	switch {
	case first:
		close(m.begun)
	case !now.Same(before):
		m.requeueTenants(ctx)
	}
	if now.Switching() {
		return m.timing.SwitchLook, nil
	}
	m.switchedSince, m.placedSince = time.Time{}, time.Time{}
	return max(time.Until(m.askAt), m.timing.ErrorMin), nil
}

// advanceSwitch ends the switch of modes SwitchGrace after the rules and bindings of both forms are in place everywhere. It waits no
// longer than SwitchLimit.
func (m *modes) advanceSwitch(ctx context.Context, mode grants.Mode) {
	if m.switchedSince.IsZero() {
		m.switchedSince = time.Now()
	}
	switch inPlace := m.inPlace(ctx, mode); {
	case !inPlace:
		m.placedSince = time.Time{}
	case m.placedSince.IsZero():
		m.placedSince = time.Now()
	}
	late := time.Since(m.switchedSince) >= m.timing.SwitchLimit
	if late && m.placedSince.IsZero() {
		ctrl.Log.WithName("access").Info("the mode of sudo is switched although the new rules and bindings are not in place everywhere; "+
			"where they are missing, sudo may be refused until they are written", "after",
			m.timing.SwitchLimit)
	}
	if late || !m.placedSince.IsZero() && time.Since(m.placedSince) >= m.timing.SwitchGrace {
		m.setMode(mode.Finish())
	}
}

// beginWithRules sets the first mode: the one by which the existing ClusterRoles grant sudo.
func (m *modes) beginWithRules(ctx context.Context) error {
	var found []grants.Forms
	roles := &rbacv1.ClusterRoleList{}
	if err := m.objects.client.List(ctx, roles); err != nil {
		return fmt.Errorf("listing ClusterRoles to find the mode of sudo: %w", err)
	}
	for i := range roles.Items {
		if grants.GrantsSudo(&roles.Items[i]) {
			found = append(found, grants.FormsIn(&roles.Items[i]))
		}
	}
	m.setMode(grants.ModeOf(found))
	return nil
}

// askForMode sets the mode from the configuration and, unless the configuration says Legacy, from the answer of the API server. It returns
// that answer; Unknown if it did not ask.
func (m *modes) askForMode(ctx context.Context) grants.Answer {
	configured, answer := m.config.SudoMode, grants.Unknown
	if configured != v1alpha1.SudoLegacy {
		answer = m.probe(ctx)
	}
	before := m.currentMode()
	now := before.Next(configured, answer)
	m.setMode(now)
	if now.Unavailable && !before.Unavailable {
		ctrl.Log.WithName("access").Error(errors.New(unavailable), "sudo.mode is Constrained, so no further sudo is granted", "answer", answer)
	}
	return answer
}

// answerTTL returns how long to wait after an answer before the API server is asked again.
func (m *modes) answerTTL(answer grants.Answer) time.Duration {
	if answer == grants.Unknown && m.config.SudoMode != v1alpha1.SudoLegacy {
		return m.timing.ProbeRetry
	}
	return m.timing.Probe
}

func (m *modes) setMode(mode grants.Mode) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mode = mode
	for _, known := range []v1alpha1.SudoMode{v1alpha1.SudoLegacy, v1alpha1.SudoConstrained} {
		value := 0.0
		if known == mode.Told {
			value = 1
		}
		sudoMode.WithLabelValues(string(known)).Set(value)
	}
}

// requeueTenants requeues every tenant.
func (m *modes) requeueTenants(ctx context.Context) {
	mode := m.currentMode()
	ctrl.Log.WithName("access").Info("the mode of sudo changes", "mode", mode.Told, "legacyRules", mode.Forms.Legacy, "constrainedRules",
		mode.Forms.Constrained)
	tenants := &v1alpha1.LNamespaceList{}
	if err := m.objects.client.List(ctx, tenants); err != nil {
		ctrl.Log.WithName("access").Error(err, "listing LNamespaces to switch the mode of sudo") // a cache that has synced doesn't fail
		return
	}
	for i := range tenants.Items {
		m.Add(requestFor(tenants.Items[i].Name))
	}
}
