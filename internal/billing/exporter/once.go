package exporter

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	clientconfig "sigs.k8s.io/controller-runtime/pkg/client/config"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/apiserver"
	"github.com/warren-tenancy/warren/internal/forest"
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
	api, err := apiserver.NewClient(cfg)
	if err != nil {
		return billing.Plan{}, err
	}
	known := newCluster(forest.Rules{ProtectedName: func(name string) bool { return c.Protected(name, operatorNamespace) }})
	for _, f := range newFeeds(nil) {
		list := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return f.readPage(ctx, api, o)
		})
		list.PageSize = pageSize
		if _, _, err := list.ListWithAlloc(ctx, metav1.ListOptions{}); err != nil {
			return billing.Plan{}, fmt.Errorf("listing what is to be compared: %w", err)
		}
		for _, facts := range f.pages {
			known.apply(change{facts: facts})
		}
	}
	completeUntil, err := store.CompleteUntil(ctx)
	if err != nil {
		return billing.Plan{}, err
	}
	desired, unknown := known.all()
	plan, err := billing.Diff(billing.Comparison{Cluster: clusterID(&c.Billing), Desired: desired, Unknown: unknown, Complete: true,
		Seen: clock.Now(), CompleteUntil: completeUntil, Open: store.OpenPeriods(ctx), HoldFor: time.Hour})
	if err != nil {
		return billing.Plan{}, err
	}
	latest, err := store.Latest(ctx, plan.Namespaces())
	return plan.After(latest), err
}
