// Package operator is the process of the operator: its flags, its manager, its probes and metrics, and the wiring of the
// reconcilers and webhooks.
package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/controllers/access"
	"github.com/warren-tenancy/warren/controllers/budget"
	"github.com/warren-tenancy/warren/controllers/certificate"
	copiesrunner "github.com/warren-tenancy/warren/controllers/copies"
	"github.com/warren-tenancy/warren/controllers/distribution"
	"github.com/warren-tenancy/warren/controllers/guard"
	"github.com/warren-tenancy/warren/controllers/hierarchy"
	"github.com/warren-tenancy/warren/controllers/labelling"
	"github.com/warren-tenancy/warren/controllers/lnamespace"
	"github.com/warren-tenancy/warren/controllers/ownrights"
	"github.com/warren-tenancy/warren/controllers/subnamespace"
	"github.com/warren-tenancy/warren/controllers/sudo"
	"github.com/warren-tenancy/warren/controllers/vetting"
	"github.com/warren-tenancy/warren/internal/billing/programs"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/manifests"
	"github.com/warren-tenancy/warren/internal/namespaces"
	"github.com/warren-tenancy/warren/internal/rules"
	"github.com/warren-tenancy/warren/internal/view"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// Timing holds the time constants of the operator, so that tests can shrink them.
type Timing struct {
	Copies       copyengine.Timing
	Generated    labelling.Timing
	Distribution distribute.Timing
	Access       access.Timing
	Guard        guard.Timing
	Certificate  certificate.Timing
	Vetting      vetting.Timing
	// RetryMax caps the back-off of namespaces that the API server refuses to make or to label.
	RetryMax time.Duration
	// ReportPace is the least time between two checks of what is to be reported on one namespace.
	ReportPace time.Duration
	// MemoryLook is the time between two checks whether memory can be given back to the operating system.
	MemoryLook time.Duration
	// RestoreLook is the time between two checks whether etcd was restored to an older state.
	RestoreLook time.Duration
	// JudgeFile is the time between two judgements of a configuration file that was not accepted. A judgement may be much work for the API
	// server.
	JudgeFile time.Duration
}

// DefaultTiming is what production uses.
func DefaultTiming() Timing {
	return Timing{
		Copies: copyengine.DefaultTiming(), Generated: labelling.DefaultTiming(), Distribution: distribute.DefaultTiming(),
		Access: access.DefaultTiming(), Guard: guard.DefaultTiming(),
		Certificate: certificate.DefaultTiming(), Vetting: vetting.DefaultTiming(), RetryMax: 5 * time.Minute,
		ReportPace: 2 * time.Second, MemoryLook: 10 * time.Second, RestoreLook: 10 * time.Second, JudgeFile: 30 * time.Second,
	}
}

// setup is what the reconcilers have in common.
type setup struct {
	mgr       *Manager
	config    *config.OperatorConfiguration
	namespace string // the operator's own
	// asked is the name of the configuration of the webhooks that check the rights of the user who makes an LNamespace; "" where none are
	// served
	asked             string
	timing            Timing
	view              *view.View
	events            record.EventRecorder
	namespaces        *namespaces.Writer
	hierarchy         *hierarchy.Reconciler
	hierarchyReporter *hierarchy.Reporter
	access            *access.Reconciler
	vetter            *vetting.Vetter
	tenantReporter    *lnamespace.Reporter
	tenants           *lnamespace.Reconciler
	guard             *guard.Guard
	budgets           *budget.Reconciler
	informers         *watchset.Set // of the kinds that are copied
	// revoked is closed once all rights are revoked that the tenants' lists had lost before the start; at once if controller access is off
	revoked chan struct{}
}

// Setup adds to mgr every controller that the configuration enables, what these share, and the webhooks.
func Setup(ctx context.Context, mgr *Manager, file *ConfigFile, o *Options, timing Timing) error {
	operatorNamespace := o.OperatorNamespace
	s := &setup{mgr: mgr, config: file.Config, namespace: operatorNamespace, timing: timing, revoked: newRevoked(file.Config)}
	if o.Webhooks.Enabled {
		s.asked = certificate.ConfigurationName
	}
	s.events = mgr.GetEventRecorderFor(v1alpha1.OperatorName) //nolint:staticcheck // Events are core/v1, with component warren
	s.view = view.New(rules.ForForest(s.config, operatorNamespace))
	if err := s.view.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	if err := s.addAcceptance(file); err != nil {
		return err
	}
	if err := mgr.Add(newMemoryKeeper(timing.MemoryLook)); err != nil {
		return err
	}
	if err := mgr.Add(restoreLook{live: mgr.GetAPIReader(), seen: s.view.SeenVersion, interval: timing.RestoreLook}); err != nil {
		return err
	}
	s.namespaces = &namespaces.Writer{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), View: s.view}
	s.hierarchy = &hierarchy.Reconciler{Client: mgr.GetClient(), Namespaces: s.namespaces, View: s.view, Events: s.events,
		Concurrency: s.workers(), RetryMax: timing.RetryMax, After: s.revoked}
	s.hierarchyReporter = &hierarchy.Reporter{
		Client: mgr.GetClient(), View: s.view, Events: s.events, Rejected: s.hierarchy.Rejected, Refused: s.hierarchy.Refused,
		Waiting: s.hierarchy.Waiting, Concurrency: s.workers(), Pace: timing.ReportPace,
	}
	s.tenantReporter = &lnamespace.Reporter{Client: mgr.GetClient(), Live: mgr.GetAPIReader()}
	s.vetter = s.newVetter()
	s.access = s.newAccess()
	if err := errors.Join(s.addInformers(), s.addGuard(), s.addBudgets(), s.addSudo()); err != nil {
		return err
	}
	for _, c := range []struct {
		name string
		add  func(context.Context) error
	}{
		{config.ControllerAccess, s.addAccess},
		{config.ControllerLNamespace, s.addTenants},
		{config.ControllerSubNamespace, s.addSubNamespaces},
		{config.ControllerPropagation, s.addPropagation},
		{config.ControllerDistribution, s.addDistribution},
		{config.ControllerHierarchy, s.addHierarchy},
	} {
		if !s.config.Enabled(c.name) {
			continue
		}
		if err := c.add(ctx); err != nil {
			return fmt.Errorf("starting controller %s: %w", c.name, err)
		}
	}
	return s.addWebhooks(ctx, o.Webhooks)
}

// newRevoked returns the channel that setup.revoked describes. Where controller access is switched off, no controller would close it.
func newRevoked(c *config.OperatorConfiguration) chan struct{} {
	revoked := make(chan struct{})
	if !c.Enabled(config.ControllerAccess) {
		close(revoked)
	}
	return revoked
}

// addInformers adds the informers of the kinds that are copied. They speak HTTP/1.1, as the writer of copies does.
func (s *setup) addInformers() (err error) {
	options := informerOptions(s.config)
	options.Scheme = s.mgr.GetScheme()
	if s.informers, err = watchset.New(copying.OverHTTP1(s.mgr.GetConfig()), options); err != nil {
		return fmt.Errorf("making the informers of copied kinds: %w", err)
	}
	return s.mgr.Add(s.informers)
}

// addGuard adds the guard, which watches whether the admission policies fit the configuration in force.
func (s *setup) addGuard() error {
	s.guard = &guard.Guard{
		Live: s.mgr.GetAPIReader(), Mapper: s.mgr.GetRESTMapper(), Events: s.events, Timing: s.timing.Guard,
		Kinds:      manifests.Kinds(s.config),
		Deployment: guard.Deployment(s.namespace),
	}
	s.mgr.AddNotes(s.guard.Notes)
	return s.guard.SetupWithManager(s.mgr)
}

// addBudgets adds the controller of budgets, whether or not component budgets is installed, which gives it its rights.
func (s *setup) addBudgets() error {
	s.budgets = budget.New(budget.Options{
		Client: s.mgr.GetClient(), Live: s.mgr.GetAPIReader(), View: s.view, PatchNamespace: s.namespaces.Patch, Informers: s.informers,
		Report: s.tenantReporter.Report, Newest: s.tenantReporter.Newest,
		Concurrency: s.workers(), Metrics: s.config.FeatureEnabled(config.BudgetMetrics),
	})
	s.access.AwaitsRails = s.budgets.AwaitsShare
	return s.budgets.SetupWithManager(s.mgr)
}

// addSudo adds the controller of sudo on request, whether or not component requests is installed, which gives it its rights.
func (s *setup) addSudo() error {
	return sudo.New(sudo.Options{
		Informers: s.informers, Events: s.events, Limits: rules.ForSudo(s.config), Concurrency: s.workers(), Served: s.access.BeginRequests,
	}).SetupWithManager(s.mgr)
}

// newVetter returns the vetter, which compares the ClusterRole of users with the vetted list of its rights.
func (s *setup) newVetter() *vetting.Vetter {
	return &vetting.Vetter{
		Tenants: s.mgr.GetClient(), Live: s.mgr.GetAPIReader(), Events: s.events, Timing: s.timing.Vetting,
		Role: s.config.Access.UserClusterRole,
	}
}

// workers is how many Namespaces, and how many HierarchyConfigurations, are worked on at once: an eighth of the writes of copies. With as
// many workers as writes, other copies took two and a half times as long while 100 namespaces of one tenant asked for a parent.
func (s *setup) workers() int { return max(1, s.config.Concurrency/8) }

func (s *setup) newAccess() *access.Reconciler {
	r := &access.Reconciler{
		Client: s.mgr.GetClient(), Live: s.mgr.GetAPIReader(), Events: s.events,
		View: s.view, Report: s.tenantReporter.Report,
		Unvetted: s.vetter.Unvetted, Vetting: s.vetter,
		Config:  accessSettings(s.config, s.namespace),
		Timing:  s.timing.Access,
		Revoked: s.revoked,
		Workers: s.config.Concurrency,
	}
	r.Changes = s.view.Source(func(c view.Change) []reconcile.Request {
		return append(lnamespace.Concerned(c), r.Listing(c.Namespaces)...)
	})
	return r
}

func (s *setup) addAccess(context.Context) error {
	if err := s.vetter.SetupWithManager(s.mgr); err != nil {
		return err
	}
	return s.access.SetupWithManager(s.mgr)
}

func (s *setup) addTenants(context.Context) error {
	bills := s.config.Billing.Driver != config.DriverNone
	if err := (&lnamespace.ExporterWatch{
		Tenants: s.mgr.GetClient(), Live: s.mgr.GetAPIReader(), Report: s.tenantReporter, Bills: bills,
		Lease: client.ObjectKey{Namespace: s.namespace, Name: programs.LeaseName}, Timing: lnamespace.DefaultExporterTiming(),
	}).SetupWithManager(s.mgr); err != nil {
		return err
	}
	s.tenants = &lnamespace.Reconciler{
		Client: s.mgr.GetClient(), Live: s.mgr.GetAPIReader(), Namespaces: s.namespaces, View: s.view, Events: s.events,
		Reserved:             func(name string) bool { return s.config.Reserved(name, s.namespace) },
		MaxPerCreator:        s.config.Tenants.MaxPerCreator,
		WebhookConfiguration: s.asked,
		Bills:                bills,
		Access:               s.withdrawer(),
		Report:               s.tenantReporter,
		RetryMax:             s.timing.RetryMax,
		Concurrency:          s.config.Concurrency,
	}
	return s.tenants.SetupWithManager(s.mgr)
}

// withdrawer returns what revokes the rights of a tenant that is being deleted; nil if controller access is switched off.
func (s *setup) withdrawer() lnamespace.Withdrawer {
	if !s.config.Enabled(config.ControllerAccess) {
		return nil
	}
	return s.access
}

func (s *setup) addSubNamespaces(context.Context) error {
	return (&subnamespace.Reconciler{
		Client: s.mgr.GetClient(), Live: s.mgr.GetAPIReader(), Namespaces: s.namespaces, View: s.view, Events: s.events,
		Rejected:    s.hierarchy.Rejected,
		RetryMax:    s.timing.RetryMax,
		After:       s.revoked,
		Concurrency: s.config.Concurrency,
	}).SetupWithManager(s.mgr)
}

// addHierarchy is called after addPropagation, because the hierarchy's reporter reports the troubles of copies, which the engine of
// addPropagation knows.
func (s *setup) addHierarchy(context.Context) error {
	if err := s.hierarchy.SetupWithManager(s.mgr); err != nil {
		return err
	}
	return s.hierarchyReporter.SetupWithManager(s.mgr)
}

func (s *setup) addPropagation(context.Context) error {
	settings := copiesSettings(s.config, s.timing.Copies)
	settings.AwaitsShare = s.budgets.AwaitsShare
	engine, err := copiesrunner.New(copiesrunner.Options{Options: s.copyingOptions(), Troubled: s.reportCopies}, settings)
	if err != nil {
		return err
	}
	if err := s.mgr.AddReadyzCheck("propagation", engine.Ready); err != nil {
		return err
	}
	s.mgr.AddNotes(engine.Unobserved)
	s.hierarchyReporter.Copies = engine
	if s.tenants != nil {
		s.tenants.Copies = engine
		s.tenants.Uncopied = &lnamespace.UncopiedGuardrails{Live: s.mgr.GetAPIReader(), Kinds: uncopiedKinds(s.config, lnamespace.Guardrails)}
	}
	s.access.Copies = engine
	s.access.AwaitsRails = func(root string) bool { return s.budgets.AwaitsShare(root) || engine.AwaitsRails(root) }
	if s.config.FeatureEnabled(config.PropagateGenerated) {
		if err := s.addGenerated(); err != nil {
			return err
		}
	}
	if err := engine.SetupWithManager(s.mgr); err != nil {
		return err
	}
	return (&ownrights.Reconciler{
		Client: s.mgr.GetClient(), View: s.view, HoldsCopies: engine.HoldsCopies, Concurrency: s.config.Concurrency,
		Enabled: s.config.Propagation.BindOwnRole, OperatorNamespace: s.namespace,
	}).SetupWithManager(s.mgr)
}

// reportCopies makes the controllers that report on copies in these namespaces do so again.
func (s *setup) reportCopies(namespaces ...string) {
	s.hierarchyReporter.Again(namespaces...)
	if s.tenants != nil {
		s.tenants.Again(namespaces...)
	}
	snapshot := s.view.Snapshot()
	s.access.Again(slices.DeleteFunc(slices.Clone(namespaces), func(name string) bool { return snapshot.Tenant(name) == nil })...)
}

// addGenerated adds the Labeller, which turns generated objects into sources that the engine copies.
func (s *setup) addGenerated() error {
	labeller, err := labelling.New(labelling.Options{
		Config: s.mgr.GetConfig(), View: s.view, Events: s.events, Timing: s.timing.Generated, Informers: s.informers,
	}, generatedSettings(s.config))
	if err != nil {
		return err
	}
	s.mgr.AddNotes(labeller.Notes)
	return labeller.SetupWithManager(s.mgr)
}

// copyingOptions returns what both copying engines need of the operator.
func (s *setup) copyingOptions() copying.Options {
	return copying.Options{
		Config: s.mgr.GetConfig(), View: s.view, Events: s.events, Concurrency: s.config.Concurrency,
		Scrub:       scrubSettings(s.config),
		Informers:   s.informers,
		Refused:     s.budgets.TakeRefusal,
		Unprotected: func() bool { return s.guard.Missing(manifests.Copy) },
		After:       s.revoked,
	}
}

// addDistribution adds the controller of ResourceDistributions, whether or not their CRD is installed: a component installs it.
func (s *setup) addDistribution(context.Context) error {
	options := distributeOptions(s.config, s.namespace, s.timing.Distribution)
	options.AwaitsShare = s.budgets.AwaitsShare
	runner, err := distribution.New(s.copyingOptions(), options)
	if err != nil {
		return err
	}
	if err := s.mgr.AddReadyzCheck("distribution", runner.Ready); err != nil {
		return err
	}
	return runner.SetupWithManager(s.mgr)
}
