// Package controllers puts the reconcilers together.
package controllers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/controllers/access"
	"github.com/warren-tenancy/warren/controllers/hierarchy"
	"github.com/warren-tenancy/warren/controllers/index"
	"github.com/warren-tenancy/warren/controllers/lnamespace"
	"github.com/warren-tenancy/warren/controllers/propagation"
	"github.com/warren-tenancy/warren/controllers/subnamespace"
	"github.com/warren-tenancy/warren/internal/configfile"
)

// Timing holds the time constants of the operator, so that tests can shrink them.
type Timing struct {
	Propagation propagation.Timing
	Access      access.Timing
	// RetryMax caps the back-off of namespaces that the API server refuses to make.
	RetryMax time.Duration
}

// DefaultTiming is what production uses.
func DefaultTiming() Timing {
	return Timing{Propagation: propagation.DefaultTiming(), Access: access.DefaultTiming(), RetryMax: 5 * time.Minute}
}

// setup is what the reconcilers have in common.
type setup struct {
	mgr       ctrl.Manager
	store     *configfile.Store
	namespace string // the operator's own
	timing    Timing
	index     *index.Index
	events    record.EventRecorder
	keys      *hierarchy.Reconciler
	access    *access.Reconciler
	report    *lnamespace.Reporter
}

// Setup runs every controller that the configuration enables with mgr.
func Setup(ctx context.Context, mgr ctrl.Manager, store *configfile.Store, operatorNamespace string, timing Timing) error {
	s := &setup{mgr: mgr, store: store, namespace: operatorNamespace, timing: timing}
	s.events = mgr.GetEventRecorderFor(v1alpha1.OperatorName) //nolint:staticcheck // Events are core/v1, with component warren
	s.index = index.New(forestRules(store.Current(), operatorNamespace))
	if err := s.index.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	store.Subscribe(func(_, now *config.OperatorConfiguration) { s.index.Reconfigure(forestRules(now, operatorNamespace)) })
	s.keys = &hierarchy.Reconciler{Client: mgr.GetClient(), Index: s.index, Events: s.events, Concurrency: store.Current().Concurrency}
	s.report = &lnamespace.Reporter{Client: mgr.GetClient(), Live: mgr.GetAPIReader()}
	s.access = s.newAccess()
	for _, c := range []struct {
		name string
		add  func(context.Context) error
	}{
		{config.ControllerAccess, func(context.Context) error { return s.access.SetupWithManager(mgr) }},
		{config.ControllerLNamespace, s.addTenants},
		{config.ControllerSubNamespace, s.addSubNamespaces},
		{config.ControllerHierarchy, func(context.Context) error { return s.keys.SetupWithManager(mgr) }},
		{config.ControllerPropagation, s.addPropagation},
	} {
		if !store.Current().Enabled(c.name) {
			continue
		}
		if err := c.add(ctx); err != nil {
			return fmt.Errorf("starting controller %s: %w", c.name, err)
		}
	}
	return nil
}

func (s *setup) newAccess() *access.Reconciler {
	return &access.Reconciler{
		Client: s.mgr.GetClient(), Live: s.mgr.GetAPIReader(), Events: s.events,
		Forest: s.index, Changes: s.index.Source(lnamespace.Concerned), Report: s.report.Report,
		Config:  func() access.Settings { return accessSettings(s.store.Current(), s.namespace) },
		Timing:  s.timing.Access,
		Workers: s.store.Current().Concurrency,
	}
}

func (s *setup) addTenants(context.Context) error {
	return (&lnamespace.Reconciler{
		Client: s.mgr.GetClient(), Live: s.mgr.GetAPIReader(), Index: s.index, Events: s.events,
		Reserved:    func(name string) bool { return s.store.Current().Reserved(name, s.namespace) },
		Access:      s.access,
		Report:      s.report,
		Concurrency: s.store.Current().Concurrency,
	}).SetupWithManager(s.mgr)
}

func (s *setup) addSubNamespaces(context.Context) error {
	return (&subnamespace.Reconciler{
		Client: s.mgr.GetClient(), Live: s.mgr.GetAPIReader(), Index: s.index, Events: s.events,
		Rejected:    s.keys.Rejected,
		RetryMax:    s.timing.RetryMax,
		Concurrency: s.store.Current().Concurrency,
	}).SetupWithManager(s.mgr)
}

func (s *setup) addPropagation(ctx context.Context) error {
	engine, err := propagation.New(propagation.Options{
		Config: s.mgr.GetConfig(), HTTPClient: s.mgr.GetHTTPClient(), Mapper: s.mgr.GetRESTMapper(),
		Index: s.index, Events: s.events, Concurrency: s.store.Current().Concurrency, Timing: s.timing.Propagation,
	}, propagationSettings(s.store.Current()))
	if err != nil {
		return err
	}
	s.store.Subscribe(func(old, now *config.OperatorConfiguration) {
		if propagationChanged(old, now) {
			engine.Reconfigure(ctx, propagationSettings(now))
		}
	})
	if err := s.mgr.AddReadyzCheck("propagation", engine.Ready); err != nil {
		return err
	}
	return engine.SetupWithManager(s.mgr)
}
