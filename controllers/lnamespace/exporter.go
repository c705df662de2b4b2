package lnamespace

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/requeue"
)

// ExporterTiming holds the time constants of ExporterWatch.
type ExporterTiming struct {
	// Look is the time between two reads of the exporter's Lease. Patience is how long the Lease may go unrenewed
	// before the exporter counts as gone.
	Look, Patience time.Duration
}

// DefaultExporterTiming is what production uses. An exporter renews its Lease every two seconds. After fifteen seconds
// without a renewal, another replica takes over.
func DefaultExporterTiming() ExporterTiming {
	return ExporterTiming{Look: 5 * time.Second, Patience: 20 * time.Second}
}

// ExporterWatch sets condition BillingExported of every tenant to False while a billing driver is configured and no
// exporter renews its Lease. Without a driver, it removes the condition. The exporter writes every other state of that
// condition.
type ExporterWatch struct {
	// Tenants reads from a cache, Live without one.
	Tenants, Live client.Reader
	Report        *Reporter
	// Bills reports whether a billing driver is configured.
	Bills bool
	// Lease is the name of the exporter's Lease.
	Lease  client.ObjectKey
	Timing ExporterTiming

	// renewed is the Lease's last renewal by the exporter's clock, and signAt the time by our own clock when we saw it:
	// the clocks needn't agree.
	renewed time.Time
	signAt  time.Time
	// toldUnseen reports that the Lease may not be read, and that NotRunning was reported to every tenant for that.
	toldUnseen bool
}

// SetupWithManager runs the watch with mgr.
func (w *ExporterWatch) SetupWithManager(mgr ctrl.Manager) error {
	return (&requeue.Loop{Name: "billing-exporter", Look: w.reportExporter, RetryMin: w.Timing.Look, RetryMax: w.Timing.Look}).
		SetupWithManager(mgr)
}

// reportExporter reads the Lease of the exporter, and reports to every tenant if no exporter runs or no driver is
// configured.
func (w *ExporterWatch) reportExporter(ctx context.Context) (again time.Duration, err error) {
	if w.signAt.IsZero() {
		w.signAt = time.Now()
	}
	if !w.Bills {
		return w.Timing.Look, w.reportEach(ctx, func(status *v1alpha1.LNamespaceStatus, _ int64) {
			meta.RemoveStatusCondition(&status.Conditions, string(v1alpha1.ConditionBillingExported))
		})
	}
	lease := &coordinationv1.Lease{}
	err = w.Live.Get(ctx, w.Lease, lease)
	unseen := apierrors.IsForbidden(err)
	if err != nil && !apierrors.IsNotFound(err) && !unseen {
		return 0, fmt.Errorf("reading Lease %s: %w", w.Lease, err)
	}
	if held := lease.Spec.HolderIdentity; held != nil && *held != "" && lease.Spec.RenewTime != nil &&
		!lease.Spec.RenewTime.Equal(&metav1.MicroTime{Time: w.renewed}) {
		w.renewed, w.signAt = lease.Spec.RenewTime.Time, time.Now()
	}
	if time.Since(w.signAt) < w.Timing.Patience {
		return w.Timing.Look, nil
	}
	message := "no billing exporter runs: deploy component billing-sqlite, billing-postgres or billing-bigquery, or look at the log of " +
		"Deployment " + w.Lease.Name
	if unseen {
		// The operator may read the Lease where the exporter's component is deployed. So mostly no exporter runs, but the right may be lost. A
		// running exporter then replaces the report, which is not repeated: the two would write in turns for ever.
		message = "the operator may not read Lease " + w.Lease.String() + ", so it does not know of a billing exporter: deploy component " +
			"billing-sqlite, billing-postgres or billing-bigquery, which gives it that right"
	}
	w.toldUnseen = w.toldUnseen && unseen
	err = w.reportEach(ctx, func(status *v1alpha1.LNamespaceStatus, generation int64) {
		v1alpha1.SetCondition(&status.Conditions, generation, v1alpha1.ConditionBillingExported, metav1.ConditionFalse, v1alpha1.ReasonNotRunning,
			message)
	})
	w.toldUnseen = unseen && err == nil
	return w.Timing.Look, err
}

// reportEach applies change to the status of every tenant whose condition BillingExported is not as it must be. If the
// API server refuses one status, the others are written all the same.
func (w *ExporterWatch) reportEach(ctx context.Context, change func(*v1alpha1.LNamespaceStatus, int64)) error {
	var tenants v1alpha1.LNamespaceList
	if err := w.Tenants.List(ctx, &tenants, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing LNamespaces: %w", err)
	}
	var refused []error
	for i := range tenants.Items {
		lns := &tenants.Items[i]
		was := v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionBillingExported)
		if !w.Bills && was == nil || w.Bills && was != nil && (w.toldUnseen || was.Reason == string(v1alpha1.ReasonNotRunning)) {
			continue
		}
		err := w.Report.Report(ctx, lns.DeepCopy(), func(status *v1alpha1.LNamespaceStatus) { change(status, lns.Generation) })
		switch {
		case err != nil && apianswer.IsRefusal(err):
			refused = append(refused, err)
		case err != nil:
			return err // an outage: all others would fail, too
		}
	}
	return errors.Join(refused...)
}
