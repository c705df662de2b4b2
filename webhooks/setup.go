// Package webhooks answers admission requests about Warren's own objects, and about Namespaces whose Warren keys
// change. The ValidatingAdmissionPolicies (config/policy) judge what one object alone shows; the webhooks judge what
// needs other objects. Their handlers leave the decisions to pure functions, which are in the files *_rules.go.
//
// An answer must not reveal to its reader which namespaces of other users exist: type visibility decides which ones it
// names (sight.go).
//
// If the operator has not received the necessary data yet, the answer is 503 with retryAfterSeconds 1: kubectl then
// tries again by itself, up to ten times. It is never 401, for which kubectl prints "You must be logged in to the
// server", and never 409, which kubectl repeats in vain for four seconds.
package webhooks

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/authorizer"
	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/internal/forest"
)

// View is the shared view of all namespaces, which every replica keeps.
type View interface {
	Snapshot() *forest.Snapshot
	// Synced reports whether all namespaces that exist are in the snapshot.
	Synced() bool
}

// Options hold what the handlers need.
type Options struct {
	View View
	// Config is the configuration in force.
	Config *config.OperatorConfiguration
	// Namespace is the namespace that the operator runs in.
	Namespace string
	// MakeRoom makes room in the share of a namespace.
	MakeRoom RoomMaker
	// Live reads from the API server, without a cache, and Authorizer describes what a user may do. SetupWithManager
	// sets both.
	Live       client.Reader
	Authorizer authorizer.Authorizer
	// Mapper knows the kinds that the API server serves, and DryRun writes objects by dry run. SetupWithManager sets
	// both.
	Mapper meta.RESTMapper
	DryRun client.Writer
}

// RoomMaker returns once a namespace has room for what needs so much, or will not get it.
type RoomMaker func(ctx context.Context, namespace string, needs budget.Amounts)

// SetupWithManager registers all handlers with mgr's webhook server.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	reviews, err := authorizer.New(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making a client of the authorizer: %w", err)
	}
	o.Live, o.Authorizer = mgr.GetAPIReader(), authorizer.Limit(reviews)
	o.Mapper, o.DryRun = mgr.GetRESTMapper(), client.NewDryRunClient(mgr.GetClient())
	incoming := newLimitedIntake()
	for path, hook := range Handlers(mgr.GetScheme(), o) {
		mgr.GetWebhookServer().Register(path, incoming.limitBodySize(hook))
	}
	// Whoever floods webhook room takes none of the memory of the others.
	waiting := newLimitedIntake()
	mgr.GetWebhookServer().Register(PathRoom, waiting.limitBodySize(roomHandler{o.MakeRoom}))
	return nil
}

// Paths of the handlers, as controller-runtime names them for these kinds.
const (
	PathLNamespaceDefaults     = "/mutate-tenancy-warren-dev-v1alpha1-lnamespace"
	PathLNamespaces            = "/validate-tenancy-warren-dev-v1alpha1-lnamespace"
	PathSubNamespaceDefaults   = "/mutate-tenancy-warren-dev-v1alpha1-subnamespace"
	PathSubNamespaces          = "/validate-tenancy-warren-dev-v1alpha1-subnamespace"
	PathHierarchyConfiguration = "/validate-tenancy-warren-dev-v1alpha1-hierarchyconfiguration"
	PathDistributions          = "/validate-tenancy-warren-dev-v1alpha1-resourcedistribution"
	PathSudoRequestDefaults    = "/mutate-tenancy-warren-dev-v1alpha1-sudorequest"
	PathSudoRequests           = "/validate-tenancy-warren-dev-v1alpha1-sudorequest"
	PathNamespaces             = "/validate--v1-namespace"
)

// Handlers returns the webhooks by path. One that panics answers 500.
func Handlers(scheme *runtime.Scheme, o Options) map[string]*admission.Webhook {
	ask := authorizer.Asker{Authorizer: o.Authorizer, HasHierarchy: func(ctx context.Context, namespace string) (bool, error) {
		hc, err := readHierarchyOf(ctx, o.Live, namespace)
		return hc != nil, err
	}}
	view := liveView{view: o.View, live: o.Live}
	return map[string]*admission.Webhook{
		PathLNamespaceDefaults: o.newGuardedWebhook("lnamespaces-default", kindLNamespace, &tenantDefaults{
			liveView: view, ask: ask, config: o.Config, operatorNamespace: o.Namespace, decoder: admission.NewDecoder(scheme),
		}),
		PathLNamespaces: o.newGuardedWebhook("lnamespaces", kindLNamespace, admission.WithValidator(scheme, &tenantValidator{
			liveView: view, ask: ask, config: o.Config, operatorNamespace: o.Namespace,
		}).Handler),
		PathSubNamespaceDefaults: o.newGuardedWebhook("subnamespaces-default", kindSubNamespace, admission.HandlerFunc(addSubFinalizer)),
		PathSubNamespaces: o.newGuardedWebhook("subnamespaces", kindSubNamespace,
			admission.WithValidator(scheme, &subValidator{liveView: view, ask: ask}).Handler),
		PathHierarchyConfiguration: o.newGuardedWebhook("hierarchyconfigurations", kindHierarchy,
			admission.WithValidator(scheme, &hierarchyValidator{
				liveView: view, ask: ask, config: o.Config, dryRun: o.DryRun,
			}).Handler),
		PathDistributions: o.newGuardedWebhook("resourcedistributions", kindDistribution, admission.WithValidator(scheme, &distributionValidator{
			liveView: view, ask: ask, config: o.Config, operatorNamespace: o.Namespace, mapper: o.Mapper, dryRun: o.DryRun,
		}).Handler),
		PathSudoRequestDefaults: o.newGuardedWebhook("requests-default", kindSudoRequest, &requestDefaults{live: o.Live}),
		PathSudoRequests: o.newGuardedWebhook("sudorequests", kindSudoRequest,
			admission.WithValidator(scheme, &requestValidator{live: o.Live, config: o.Config}).Handler),
		PathNamespaces: o.newGuardedWebhook("namespaces", kindNamespace,
			admission.WithValidator(scheme, &namespaceValidator{liveView: view, ask: ask}).Handler),
	}
}

// newGuardedWebhook returns a webhook that answers only reviews about kind k, and asks the client to retry while the
// forest isn't complete. It counts the answers.
func (o Options) newGuardedWebhook(name string, k kind, handler admission.Handler) *admission.Webhook {
	return &admission.Webhook{Handler: countAnswers(name,
		admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
			if !o.View.Synced() {
				return responseForError(askToRetry("the operator has not seen the namespaces of this cluster yet; try again"))
			}
			if err := checkReviewGenuine(o.View.Snapshot(), k, req); err != nil {
				return responseForError(err)
			}
			return handler.Handle(ctx, req)
		}))}
}
