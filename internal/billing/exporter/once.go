package exporter

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/paging"
)

// Compare reads the cluster and the ledger once and returns the events that the ledger lacks. It doesn't read an exporter's outbox,
// so some of these events may wait there too; if both are appended, the view shows the change once. The operator's namespace is
// protected: it belongs to no tenant.
func Compare(ctx context.Context, c *config.OperatorConfiguration, store *billing.Store, operatorNamespace string) (billing.Plan, error) {
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return billing.Plan{}, fmt.Errorf("no access to an API server: set KUBECONFIG, or run in a pod: %w", err)
	}
	clock := &serverClock{}
	cfg.Wrap(clock.listen)
	reader, err := client.New(cfg, client.Options{Scheme: scheme()})
	if err != nil {
		return billing.Plan{}, fmt.Errorf("making a client of the API server: %w", err)
	}
	known := newCluster(forest.Rules{ProtectedName: func(name string) bool { return c.Protected(name, operatorNamespace) }})
	for _, f := range newFeeds(nil) {
		if err := paging.Each(ctx, reader, f.list(), pageSize, func(object client.Object) error {
			known.apply(change{facts: factsOf(object)})
			return nil
		}); err != nil {
			return billing.Plan{}, fmt.Errorf("listing what is to be compared: %w", err)
		}
	}
	desired, unknown := known.all()
	plan, err := billing.Diff(billing.Comparison{Cluster: clusterID(&c.Billing), Desired: desired, Unknown: unknown, Complete: true,
		Seen: clock.Now(), Open: store.OpenPeriods(ctx), HoldFor: time.Hour})
	if err != nil {
		return billing.Plan{}, err
	}
	latest, err := store.Latest(ctx, plan.Namespaces())
	return plan.After(latest), err
}
