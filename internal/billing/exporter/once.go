package exporter

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	clientconfig "sigs.k8s.io/controller-runtime/pkg/client/config"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/paging"
)

// Compare reads the cluster and the ledger once and returns the events that the ledger lacks. It doesn't read an exporter's outbox,
// so some of these events may wait there too; if both are appended, the view shows the change once. The operator's namespace is
// protected: it belongs to no tenant.
func Compare(ctx context.Context, c *config.OperatorConfiguration, store *billing.Store, operatorNamespace string) (billing.Plan, error) {
	cfg, err := clientconfig.GetConfig()
	if err != nil {
		return billing.Plan{}, fmt.Errorf("no access to an API server: set KUBECONFIG, or run in a pod: %w", err)
	}
	clock := &serverClock{}
	cfg.Wrap(clock.listen)
	api, err := client.New(cfg, client.Options{Scheme: newScheme()})
	if err != nil {
		return billing.Plan{}, fmt.Errorf("making a client of the API server at %s: %w", cfg.Host, err)
	}
	known := newCluster(forest.Rules{ProtectedName: func(name string) bool { return c.Protected(name, operatorNamespace) }})
	for _, kind := range watchedKinds() {
		if err := paging.Each(ctx, api, kind.list, pageSize, func(object client.Object) error {
			known.apply(change{facts: factsOf(object)})
			return nil
		}); err != nil {
			return billing.Plan{}, fmt.Errorf("listing the namespaces and LNamespaces: %w", err)
		}
	}
	completeUntil, err := store.CompleteUntil(ctx)
	if err != nil {
		return billing.Plan{}, err
	}
	open, err := store.OpenPeriods(ctx)
	if err != nil {
		return billing.Plan{}, err
	}
	desired, unknown := known.all()
	plan := billing.Diff(billing.Comparison{Cluster: clusterID(&c.Billing), Desired: desired, Unknown: unknown, Complete: true,
		Seen: clock.Now(), CompleteUntil: completeUntil, Open: open, HoldFor: time.Hour})
	latest, err := store.Latest(ctx, plan.Namespaces())
	return plan.After(latest), err
}
