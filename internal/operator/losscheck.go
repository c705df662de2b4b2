package operator

import (
	"context"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/controllers/guard"
	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/preview"
)

// lossCheckTimeout bounds the reading of all copies.
const lossCheckTimeout = 5 * time.Minute

// lossCheck refuses a changed configuration file that would take away many copies, or many places or keys of namespaces, until the file itself
// says, by acceptRemovals, that this is meant (SUB-F10).
type lossCheck struct {
	api       client.Client
	events    record.EventRecorder
	namespace string // the operator's own
}

// addLossCheck has each change of the file checked for what it would take away. The check uses a client of its own, so that what it reads is
// not kept in the manager's cache.
func (s *setup) addLossCheck(ctx context.Context) error {
	api, err := client.New(s.mgr.GetConfig(), client.Options{Scheme: s.mgr.GetScheme(), HTTPClient: s.mgr.GetHTTPClient(), Mapper: s.mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("making a client that reads past the cache: %w", err)
	}
	losses := lossCheck{api: api, events: s.events, namespace: s.namespace}
	s.store.Check = func(old, now *config.OperatorConfiguration) error { return losses.check(ctx, old, now) }
	return nil
}

// check returns why the configuration now must not replace old: it would take away too much. Most changes take away nothing, and for them
// nothing is read.
func (l lossCheck) check(ctx context.Context, old, now *config.OperatorConfiguration) error {
	if now.AcceptRemovals == now.RemovalsHash() || !mayRemove(old, now) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lossCheckTimeout)
	defer cancel()
	losses, unread, err := preview.Losses(ctx, l.api, old, now, l.namespace)
	if err != nil {
		return configfile.Unjudged{Cause: fmt.Errorf("finding out what the configuration file would take away: %w", err)}
	}
	large := preview.TellLarge(losses)
	if hidden := concerned(old, now, unread); large == "" && hidden != "" {
		large = "copies of " + hidden + ", nobody knows how many, for the operator may not list them in all namespaces"
	}
	if large == "" {
		return nil
	}
	refusal := fmt.Errorf("the configuration file would take away %s: if that is meant, add the line acceptRemovals: \"%s\" to it; "+
		"kubectl warren config diff FILE lists what it would write", large, now.RemovalsHash())
	l.events.Event(guard.Deployment(l.namespace), corev1.EventTypeWarning, string(v1alpha1.ReasonRemovalsHeld), refusal.Error())
	return refusal
}

// concerned returns one of the unread kinds, which can't be listed in all namespaces, whose copies the change may take away; "" if there is
// none.
func concerned(old, now *config.OperatorConfiguration, unread []schema.GroupKind) string {
	for _, kind := range unread {
		before, after := old.Propagated(kind), now.Propagated(kind)
		if before != nil && (after == nil || before.Mode != after.Mode || !reflect.DeepEqual(old.ProtectedNamespaces, now.ProtectedNamespaces)) {
			return kind.Kind
		}
	}
	return ""
}

// mayRemove says whether old and now differ in a section that decides on the places of namespaces, on keys or on copies.
func mayRemove(old, now *config.OperatorConfiguration) bool {
	return !reflect.DeepEqual(old.ProtectedNamespaces, now.ProtectedNamespaces) || !reflect.DeepEqual(old.Inheritance, now.Inheritance) ||
		!reflect.DeepEqual(old.SubNamespaces, now.SubNamespaces) || old.Billing.NamespaceLabels != now.Billing.NamespaceLabels || propagationChanged(old, now)
}
