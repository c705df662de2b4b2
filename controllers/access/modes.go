package access

import (
	"context"
	"errors"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// unavailable says in a message why mode Constrained can't be in force.
const unavailable = "the API server doesn't offer constrained impersonation, which needs Kubernetes 1.36 with feature gate ConstrainedImpersonation"

// modes keeps the mode of sudo. It asks the API server from time to time whether constrained impersonation works, and ends a switch of
// modes when the rules and bindings of both forms, legacy and constrained, are in place everywhere. It is a source of the controller,
// which waits until the first mode is known.
type modes struct {
	objects *objectStore
	view    View
	config  Settings
	probe   func(context.Context) grants.Answer
	timing  Timing

	// begun is closed when the first mode is known.
	begun chan struct{}

	mu   sync.Mutex
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

// Start implements source.Source.
func (m *modes) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go m.run(ctx, enqueueTenant(queue))
	return nil
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

func (m *modes) run(ctx context.Context, enqueue func(tenant string)) {
	if !m.beginWithRules(ctx) {
		return
	}
	answer := m.lookAtMode(ctx)
	close(m.begun)
	next := time.After(m.answerTTL(answer))
	var began, settled time.Time // began: first look of the switch; settled: since when it is in place everywhere
	for {
		before := m.currentMode()
		var again <-chan time.Time
		if before.Switching() {
			again = time.After(m.timing.SwitchLook)
		} else {
			began, settled = time.Time{}, time.Time{}
		}
		select {
		case <-ctx.Done():
			return
		case <-next:
			next = time.After(m.answerTTL(m.lookAtMode(ctx)))
		case <-again:
			if began.IsZero() {
				began = time.Now()
			}
			switch inPlace := m.inPlace(ctx, before); {
			case inPlace && settled.IsZero():
				settled = time.Now()
			case !inPlace:
				settled = time.Time{}
			}
			late := time.Since(began) >= m.timing.SwitchLimit
			if late && settled.IsZero() {
				ctrl.Log.WithName("access").Info("the mode of sudo is switched although the new rules and bindings are not in place everywhere", "after", m.timing.SwitchLimit)
			}
			if late || !settled.IsZero() && time.Since(settled) >= m.timing.SwitchGrace {
				m.setMode(before.Finish())
			}
		}
		if !m.currentMode().Same(before) {
			m.requeueTenants(ctx, enqueue)
		}
	}
}

// beginWithRules takes the mode from the ClusterRoles that exist. It returns false if ctx ends before they could be read.
func (m *modes) beginWithRules(ctx context.Context) bool {
	for {
		var found grants.Forms
		roles := &rbacv1.ClusterRoleList{}
		err := m.objects.client.List(ctx, roles)
		if err == nil {
			for i := range roles.Items {
				if grants.GrantsSudo(&roles.Items[i]) {
					found = found.Or(grants.FormsIn(&roles.Items[i]))
				}
			}
			m.setMode(grants.ModeOf(found))
			return true
		}
		ctrl.Log.WithName("access").Error(err, "listing ClusterRoles to find the mode of sudo; trying again")
		select {
		case <-ctx.Done():
			return false
		case <-time.After(m.timing.RetryMin):
		}
	}
}

// lookAtMode sets the mode by the configuration and, unless that is Legacy, by the API server's answer, which it returns.
func (m *modes) lookAtMode(ctx context.Context) grants.Answer {
	configured, answer := m.config.SudoMode, grants.Unknown
	if configured != v1alpha1.SudoLegacy {
		answer = m.probe(ctx)
	}
	before := m.currentMode()
	now := before.Next(configured, answer)
	m.setMode(now)
	if now.Unavailable && !before.Unavailable {
		ctrl.Log.WithName("access").Error(errors.New(unavailable), "sudo.mode is Constrained; sudo is granted to nobody anew", "answer", answer)
	}
	return answer
}

// answerTTL returns how long an answer holds until the API server is asked again.
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
func (m *modes) requeueTenants(ctx context.Context, enqueue func(tenant string)) {
	mode := m.currentMode()
	ctrl.Log.WithName("access").Info("the mode of sudo changes", "mode", mode.Told, "legacyRules", mode.Forms.Legacy, "constrainedRules", mode.Forms.Constrained)
	tenants := &v1alpha1.LNamespaceList{}
	if err := m.objects.client.List(ctx, tenants); err != nil {
		ctrl.Log.WithName("access").Error(err, "listing LNamespaces to switch the mode of sudo") // a cache that has synced doesn't fail
		return
	}
	for i := range tenants.Items {
		enqueue(tenants.Items[i].Name)
	}
}
