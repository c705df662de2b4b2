package exporter

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/text"
)

// fieldOwner is the field manager of the one condition that the exporter writes, and the source of its Events.
const fieldOwner = "warren-billing-exporter"

// reporter writes condition BillingExported into the status of each LNamespace whose condition must change.
type reporter struct {
	status client.SubResourceWriter
	keeper *keeper
	clock  clock.PassiveClock
	events record.EventRecorder
	// pace is the time between two reports, patience how long a change may wait before the condition says so.
	pace, patience time.Duration
}

// Start implements manager.Runnable.
func (r *reporter) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := r.reportTenants(ctx); err != nil && ctx.Err() == nil {
			ctrllog.FromContext(ctx).WithName("billing").Error(err, "reporting what is exported")
		}
	}, r.pace)
	return nil
}

// situation holds the facts that decide all tenants' conditions.
type situation struct {
	*backlog
	err error
	// blind is why changes in the cluster aren't seen; nil if they are.
	blind    error
	trouble  billing.Trouble
	compared bool
	now      time.Time
}

// readSituation reads the backlog before the keeper's outcome: a change that the backlog has may be in the ledger by
// then, not the reverse.
func (r *reporter) readSituation() situation {
	s := situation{backlog: r.keeper.tracker.readBacklog(), now: r.clock.Now()}
	s.trouble, s.compared, s.err, s.blind = r.keeper.readState()
	return s
}

func (r *reporter) reportTenants(ctx context.Context) (err error) {
	s := r.readSituation()
	if s.backlog == nil {
		return nil
	}
	for _, tenant := range s.tenants {
		want := s.buildCondition(tenant.uid, r.patience)
		if want == nil || !needsWrite(tenant.reported, want, tenant.generation) {
			continue
		}
		if failed := r.writeCondition(ctx, tenant, want); failed != nil {
			err = errors.Join(err, failed)
			if ctx.Err() != nil || !refusedAlone(failed) {
				return err
			}
		}
	}
	return err
}

// refusedAlone reports whether the API server refused the write of one status because of its content, so that other
// statuses may still be written.
func refusedAlone(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err)
}

// needsWrite reports whether the condition must be written: it is missing, differs, or has an older generation. Numbers
// in a message, and names of a single try, such as a job's, count as no difference, because they differ each time.
func needsWrite(was, want *metav1.Condition, generation int64) bool {
	return was == nil || was.Status != want.Status || was.Reason != want.Reason || was.ObservedGeneration != generation ||
		countsAndNames.ReplaceAllString(was.Message, "#") != countsAndNames.ReplaceAllString(want.Message, "#")
}

// countsAndNames are numbers, and words so long that a program must have chosen them.
var countsAndNames = regexp.MustCompile(`[A-Za-z0-9_-]{20,}|[0-9]+`)

// buildCondition returns the condition of a tenant, by its UID; nil while there is nothing to report yet.
func (s situation) buildCondition(tenant types.UID, patience time.Duration) *metav1.Condition {
	since, waits := s.waits[string(tenant)]
	refused, isRefused := s.refused[string(tenant)]
	switch {
	case isRefused:
		return newExported(false, v1alpha1.ReasonInvalidData, "the ledger refused the data of a change of this tenant: "+text.Cut(refused, 512)+
			"; change spec.billing, or make the ledger accept the data: the exporter tries again with each comparison")
	case s.err != nil && (waits || !s.compared):
		return newExported(false, conditionReason(s.trouble), describeAdvice(s.trouble)+": "+text.Cut(s.err.Error(), 512))
	case s.blind != nil:
		return newExported(false, v1alpha1.ReasonPending, "the exporter can't watch the cluster; a cluster admin must repair this: "+
			text.Cut(s.blind.Error(), 512))
	case waits && s.now.Sub(since) > patience:
		return newExported(false, v1alpha1.ReasonPending, "changes of this tenant wait to be written to the ledger")
	case waits || !s.compared:
		return nil
	}
	return newExported(true, v1alpha1.ReasonExported, "the ledger has all known changes of this tenant")
}

func newExported(yes bool, reason v1alpha1.Reason, message string) *metav1.Condition {
	status := metav1.ConditionFalse
	if yes {
		status = metav1.ConditionTrue
	}
	return &metav1.Condition{Type: string(v1alpha1.ConditionBillingExported), Status: status, Reason: string(reason), Message: message}
}

func conditionReason(t billing.Trouble) v1alpha1.Reason {
	if t == billing.Quota {
		t = billing.Unavailable
	}
	return v1alpha1.Reason(t)
}

func describeAdvice(t billing.Trouble) string {
	switch t {
	case billing.Denied:
		return "the exporter has no access to the ledger; a cluster admin must repair this, and changes wait until then"
	case billing.Mismatch:
		return "the ledger's table, view or file is wrong; a cluster admin must repair it, and changes wait until then"
	case billing.Quota:
		return "the ledger's quota is used up; changes wait, and the exporter sends them again by itself"
	}
	return "the ledger can't be used at the moment; changes wait, and the exporter sends them again by itself"
}

// writeCondition applies the one condition, by server-side apply: nothing else in the status is the exporter's. The UID
// keeps the write from a newer LNamespace of that name: the API server answers 409 then.
func (r *reporter) writeCondition(ctx context.Context, tenant *tenantFacts, want *metav1.Condition) error {
	want.ObservedGeneration = tenant.generation
	want.LastTransitionTime = metav1.NewTime(r.clock.Now().Truncate(time.Second))
	if was := tenant.reported; was != nil && was.Status == want.Status {
		want.LastTransitionTime = was.LastTransitionTime
	}
	condition, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return fmt.Errorf("writing condition %s: %w", want.Type, err)
	}
	lns := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{condition}}}}
	lns.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("LNamespace"))
	lns.SetName(tenant.name)
	lns.SetUID(tenant.uid)
	err = r.status.Apply(ctx, client.ApplyConfigurationFromUnstructured(lns), client.FieldOwner(fieldOwner), client.ForceOwnership)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // the LNamespace is gone, or was made anew
		return nil
	case err != nil:
		return fmt.Errorf("writing condition %s of LNamespace %s: %w", want.Type, tenant.name, err)
	}
	if want.Reason == string(v1alpha1.ReasonInvalidData) {
		r.events.Event(&v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: tenant.name, UID: tenant.uid}}, corev1.EventTypeWarning,
			want.Reason, want.Message)
	}
	return nil
}
