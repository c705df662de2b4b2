package exporter

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Compare reads the cluster and the ledger once and says what differs. What waits in an exporter's outbox it doesn't know: the
// events of both are then of one meaning, and the view shows one. The operator's namespace is protected.
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
	namespaces := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NamespaceList"}}
	tenants := &v1alpha1.LNamespaceList{}
	for _, list := range []client.ObjectList{namespaces, tenants} {
		if err := reader.List(ctx, list); err != nil {
			return billing.Plan{}, fmt.Errorf("listing what is to be compared: %w", err)
		}
	}
	for i := range namespaces.Items {
		known.apply(change{object: &namespaces.Items[i]})
	}
	for i := range tenants.Items {
		known.apply(change{object: &tenants.Items[i]})
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
