package preview

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/configfile"
)

// refusalTimeout bounds the reading of all copies.
const refusalTimeout = 5 * time.Minute

// Refusal returns why configuration now must not replace configuration old; "" if it may. A reason is that now would take away many copies,
// or many places or keys of namespaces. Another is that it would leave copies behind that no user could change. But now itself can accept
// all of this by acceptRemovals (SUB-F10, F13). Most changes take away nothing, and for them nothing is read.
func Refusal(ctx context.Context, api client.Client, old, now *config.OperatorConfiguration, operatorNamespace string) (string, error) {
	if now.AcceptRemovals == configfile.RemovalsHash(now) || !mayRemove(old, now) {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, refusalTimeout)
	defer cancel()
	abandoned, err := findAbandoned(ctx, api, old, now)
	if err != nil {
		return "", fmt.Errorf("finding out which copies the configuration file would leave behind: %w", err)
	}
	if len(abandoned) > 0 {
		return fmt.Sprintf("propagation.kinds no longer names kinds of which copies exist; these would stay, and no user could change "+
			"them: %s. Set the kinds to mode Remove first, and take them "+
			"out when no copy is left; or, to leave the copies behind, add the line acceptRemovals: %q", strings.Join(abandoned, ", "),
			configfile.RemovalsHash(now)), nil
	}
	losses, unread, err := Losses(ctx, api, old, now, operatorNamespace)
	if err != nil {
		return "", fmt.Errorf("finding out what the configuration file would take away: %w", err)
	}
	large := describeLarge(losses)
	if hidden := findConcerned(old, now, unread); large == "" && hidden != "" {
		large = "an unknown number of copies of " + hidden + ", because the right to list them in all namespaces is missing"
	}
	if large == "" {
		return "", nil
	}
	return fmt.Sprintf("the configuration file would take away %s: if that is meant, add the line acceptRemovals: %q to it; "+
		"kubectl warren config diff FILE -o wide lists what it would write", large, configfile.RemovalsHash(now)), nil
}

// findConcerned returns a kind in unread whose copies a change from old to now may take away; "" if there is none. The kinds in unread
// can't be listed in all namespaces.
func findConcerned(old, now *config.OperatorConfiguration, unread []schema.GroupKind) string {
	for _, kind := range unread {
		before, after := old.Propagated(kind), now.Propagated(kind)
		if before != nil && (after == nil || before.Mode != after.Mode || !reflect.DeepEqual(old.ProtectedNamespaces, now.ProtectedNamespaces)) {
			return kind.Kind
		}
	}
	return ""
}

// mayRemove reports whether old and now differ in a section that decides on the places of namespaces, on keys or on copies.
func mayRemove(old, now *config.OperatorConfiguration) bool {
	return !reflect.DeepEqual(old.ProtectedNamespaces, now.ProtectedNamespaces) || !reflect.DeepEqual(old.Inheritance, now.Inheritance) ||
		!reflect.DeepEqual(old.SubNamespaces, now.SubNamespaces) || old.Billing.NamespaceLabels != now.Billing.NamespaceLabels ||
		!reflect.DeepEqual(old.Propagation, now.Propagation)
}
