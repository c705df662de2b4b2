package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/grants"
	"github.com/warren-tenancy/warren/internal/text"
)

// quietTries is how many passes with contended objects (see outcome) a tenant gets before condition AccessReady reports
// these.
const quietTries = 3

// finding is something that keeps AccessReady from being True.
type finding struct {
	reason  v1alpha1.Reason
	message string
	// event is the reason of the Event that reports the finding; "" if only the condition does.
	event v1alpha1.Reason
	// retry reports that no event of a watch will show that the finding is over, so the tenant is requeued with
	// back-off.
	retry bool
}

// listFindings returns what is wrong, the gravest first.
func listFindings(tenant *v1alpha1.LNamespace, seen *facts, done *outcome) []finding {
	var found []finding
	// Without its root nothing can be granted, so every other finding would mislead.
	if !seen.own || seen.ending || done.rootless {
		return []finding{{reason: v1alpha1.ReasonNamespaceNotReady, retry: done.rootless,
			message: fmt.Sprintf("namespace %s does not belong to this LNamespace, or is not ready: no access is granted until condition "+
				"NamespaceReady is True", tenant.Name)}}
	}
	for _, message := range done.forbidden {
		found = append(found, finding{reason: v1alpha1.ReasonForbidden, message: message, retry: true})
	}
	for _, key := range done.conflicts {
		found = append(found, finding{reason: v1alpha1.ReasonConflict, event: v1alpha1.ReasonAccessConflict, retry: true,
			message: fmt.Sprintf("%s; a cluster admin can delete it, or create it again under another name", conflictError{key})})
	}
	for _, h := range seen.namesakes {
		if slices.Contains(done.conflicts, h.key) {
			continue
		}
		found = append(found, finding{reason: v1alpha1.ReasonConflict, event: v1alpha1.ReasonAccessConflict,
			message: fmt.Sprintf("%s has a name of the operator's for this tenant, but not its labels, and may grant rights that no list asks "+
				"for: a cluster admin sees whom it binds, and deletes it", h.key)})
	}
	if len(seen.uncopied) > 0 {
		found = append(found, finding{reason: v1alpha1.ReasonConflict, message: "the lists give no right where a copy of a RoleBinding " +
			"is missing: " + forest.First(seen.uncopied, mostUncopied, "; ")})
	}
	for _, key := range done.contended {
		found = append(found, finding{reason: v1alpha1.ReasonConflict, retry: true,
			message: fmt.Sprintf("another client keeps changing %s, so the operator can't write it: find the client in managedFields and stop it",
				key)})
	}
	if seen.groupInUse() {
		found = append(found, finding{reason: v1alpha1.ReasonGroupInUse, event: v1alpha1.ReasonGroupInUse,
			message: fmt.Sprintf("%s was already bound outside of this tenant before the first grant of sudo: no sudo is granted until "+
				"a cluster admin deletes those bindings (kubectl warren doctor names them)", sudoersOf(tenant))})
	}
	if seen.group.forbidden != "" && seen.input.Forms.Legacy {
		found = append(found, finding{reason: v1alpha1.ReasonForbidden, message: seen.group.forbidden})
	}
	if seen.roleless {
		found = append(found, finding{reason: v1alpha1.ReasonUserClusterRoleMissing, retry: true,
			message: fmt.Sprintf("ClusterRole %s of access.userClusterRole does not exist: users get no access until a cluster admin creates it, "+
				"or names another one", seen.settings.UserClusterRole)})
	}
	for _, refusal := range seen.input.Refused {
		f := finding{reason: v1alpha1.ReasonSubjectRefused, event: v1alpha1.ReasonSubjectRefused, message: refusal.Why}
		if !slices.Contains(found, f) { // a subject may be on several lists
			found = append(found, f)
		}
	}
	return found
}

// reportAccess writes the condition AccessReady and status.sudo, sends Events, and returns when to reconcile the tenant
// again. After a pass that must be repeated soon, it only sends Events.
func (r *Reconciler) reportAccess(ctx context.Context, tenant *v1alpha1.LNamespace, seen *facts, done *outcome) (ctrl.Result, error) {
	if len(done.errs) > 0 {
		r.announcer.announceChanges(tenant, false, done.changes, seen.actual)
		return ctrl.Result{}, errors.Join(done.errs...)
	}
	r.clock.dropTenant(tenant.Name)
	if seen.deleting {
		return ctrl.Result{}, nil // Withdraw, called by the LNamespace's finalizer, reports
	}
	if after, isEarly := r.putOffReport(tenant.Name, seen, done); isEarly {
		r.announcer.announceChanges(tenant, false, done.changes, seen.actual)
		return ctrl.Result{RequeueAfter: after}, nil
	}
	r.blocked.setKeys(tenant.Name, done.conflicts)
	r.elsewhere.setCount(tenant.Name, len(seen.group.inTheWay))
	found := listFindings(tenant, seen, done)
	if seen.withheldGrants().SudoAdditions && len(found) == 0 {
		r.announcer.announceChanges(tenant, false, done.changes, seen.actual)
		return ctrl.Result{}, nil // neither granted nor refused yet: the scan for foreign bindings requeues the tenant
	}
	status := metav1.ConditionTrue
	reason, message := grantedCondition(r.Unvetted)
	if len(found) > 0 {
		status, reason, message = metav1.ConditionFalse, found[0].reason, joinFindings(found)
	}
	before := v1alpha1.FindCondition(tenant.Status.Conditions, v1alpha1.ConditionAccessReady)
	settled := before != nil && before.ObservedGeneration == tenant.Generation && before.Reason == string(reason) &&
		before.Message == message &&
		!seen.switching && !modeChanged(tenant, seen)

	r.announcer.announceChanges(tenant, settled, done.changes, seen.actual)
	r.announcer.announceFindings(tenant, before, found)
	r.announcer.announceBindings(tenant, seen, before)
	if modeChanged(tenant, seen) {
		r.announcer.sendEvent(tenant, corev1.EventTypeNormal, v1alpha1.ReasonSudoModeChanged, "sudo is granted in mode "+string(seen.input.Mode))
	}
	err := r.Report(ctx, tenant, func(s *v1alpha1.LNamespaceStatus) {
		v1alpha1.SetCondition(&s.Conditions, tenant.Generation, v1alpha1.ConditionAccessReady, status, reason, message)
		// A lost root, or a binding in the way, takes the command of sudo out of the status.
		s.Sudo = nil
		if seen.own && !seen.groupInUse() {
			s.Sudo = grants.SudoStatus(tenant, seen.input)
		}
		seen.rememberGrant(s)
	})
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: r.Timing.ErrorMin}, nil // others keep writing the LNamespace
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reporting the access of LNamespace %s: %w", tenant.Name, err)
	}
	return r.lookAgainAfter(tenant.Name, found, seen.input.Mode != seen.settings.SudoMode), nil
}

// putOffReport reports whether it is too early to say whether a tenant's access is granted, and when to look again; 0 if something else
// requeues the tenant.
func (r *Reconciler) putOffReport(tenant string, seen *facts, done *outcome) (after time.Duration, isEarly bool) {
	switch {
	case len(done.busy) > 0: // the worker that writes the shared object is done soon, so a condition would only flicker
		return wait.Jitter(r.Timing.ErrorMin/2, 1), true
	case seen.unlooked: // the first look for namesakes requeues the tenant
		return 0, true
	case seen.unsure:
		return r.Timing.RetryMin, true
	case seen.unbounded:
		return r.Timing.ErrorMin, true
	case len(done.contended) > 0 && r.patience.NumRequeues(tenant) < quietTries:
		r.patience.When(tenant) // only to count the pass
		return r.Timing.ErrorMin, true
	}
	return 0, false
}

// rememberGrant records when sudoers first held sudo with no foreign binding that stopped it.
func (f *facts) rememberGrant(s *v1alpha1.LNamespaceStatus) {
	if s.SudoGrantedAt == nil && f.firstGrant() {
		s.SudoGrantedAt = new(metav1.Now().Rfc3339Copy())
	}
}

// modeChanged reports whether sudo is granted in another mode than the tenant's status says.
func modeChanged(tenant *v1alpha1.LNamespace, seen *facts) bool {
	return tenant.Status.Sudo != nil && tenant.Status.Sudo.Mode != seen.input.Mode
}

// lookAgainAfter requeues the tenant with back-off while there is a finding whose end no watch reports, or while its
// rules hold both forms of impersonation.
func (r *Reconciler) lookAgainAfter(tenant string, found []finding, inBothForms bool) ctrl.Result {
	if inBothForms && r.switches.isInPlace(tenant) {
		return ctrl.Result{RequeueAfter: r.Timing.SwitchGrace}
	}
	if inBothForms {
		return ctrl.Result{RequeueAfter: r.patience.When(tenant)}
	}
	for _, f := range found {
		if f.retry {
			return ctrl.Result{RequeueAfter: r.patience.When(tenant)}
		}
	}
	r.patience.Forget(tenant)
	return ctrl.Result{}
}

// joinFindings joins all findings to one message that a condition can hold. SetCondition would cut a longer one, and then no
// pass would find its own message in the condition.
func joinFindings(found []finding) string {
	messages := make([]string, 0, len(found))
	for _, f := range found {
		messages = append(messages, f.message)
	}
	return text.Cut(strings.Join(messages, "; "), v1alpha1.MostMessage)
}
