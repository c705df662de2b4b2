package copyengine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// This file describes what the operator cannot see, and why.

// isWide reports whether the watch of the whole cluster is synced.
func (w *watchState) isWide() bool { return w.statuses[copies.Everywhere].State == watchset.Synced }

// findUnseen returns why the operator sees nothing in namespace; the zero Status where the operator sees the objects
// there, or is about to list them.
func (w *watchState) findUnseen(namespace string) watchset.Status {
	now, tried := w.statuses[namespace]
	wide := w.statuses[copies.Everywhere]
	switch {
	case wide.State == watchset.Synced, now.State == watchset.Synced:
		return watchset.Status{}
	case !tried && wide.State != watchset.Forbidden: // where the watch of the whole cluster is forbidden, each namespace has its own watch
		return wide
	}
	return now
}

// describeDegraded returns what is wrong with a kind that is degraded, and what to do.
func (k *watchedKind) describeDegraded(after time.Duration) string {
	degraded := fmt.Sprintf("kind %s of group %q is Degraded: ", k.Kind.Kind, k.Group)
	if errors.Is(k.failure, watchset.ErrLimit) {
		return degraded + "it is " + copies.DescribeStatus(watchset.Status{Err: k.failure}) +
			"; until there is room, nothing of it is copied or removed"
	}
	answer := "none"
	if k.failure != nil {
		answer = copies.DescribeStatus(watchset.Status{Err: causeOf(k.failure)})
	}
	return fmt.Sprintf("%sthe API server has not listed it for at least %s, so nothing of it is copied or removed until it does; "+
		"repair what serves the kind, such as the conversion webhook of its CRD, or take the kind out of propagation.kinds; the last error: %s",
		degraded, after, answer)
}

// causeOf returns the API server's own error if err, the error of a watch, wraps one; otherwise err.
func causeOf(err error) error {
	if degraded := (*watchset.DegradedError)(nil); errors.As(err, &degraded) && degraded.Cause != nil {
		return degraded.Cause
	}
	return err
}

// describeForbidden returns what is wrong with a kind of scope Cluster that may not be listed or watched cluster-wide,
// and what to do.
func (k *watchedKind) describeForbidden() string {
	advice := ", or set scope of the kind in propagation.kinds to Auto, so that it is watched where that is allowed"
	if k.Group == rbacv1.GroupName { // kinds of RBAC are always watched in the whole cluster
		advice = ""
	}
	return fmt.Sprintf("%s: forbidden cluster-wide, so nothing of it is copied or removed anywhere; grant the operator list and watch on it "+
		"by a ClusterRoleBinding%s", k.resource.GroupResource(), advice)
}

func (ws *watches) describeBlind() []string {
	var all []string
	for _, k := range ws.kinds {
		switch k.state {
		case copies.KindDegraded:
			all = append(all, k.describeDegraded(ws.settings.DegradedAfter))
		case copies.KindForbidden:
			all = append(all, k.describeForbidden())
		}
	}
	slices.Sort(all)
	return all
}

// unseenPart is what the operator cannot see of a narrow kind in one namespace, and why.
type unseenPart struct {
	resource  schema.GroupResource
	namespace string
	status    watchset.Status
}

// findUnseen returns the narrow kinds of which the operator sees nothing in namespace, or no source in one of the
// namespaces above.
func (ws *watches) findUnseen(namespace string) []unseenPart {
	above, _ := ws.world.Forest.Sources(namespace)
	var all []unseenPart
	for _, k := range ws.kinds {
		if !k.IsNarrow() || k.resource.Resource == "" {
			continue
		}
		for role, w := range k.watches {
			if status := w.findUnseen(namespace); status.State != "" {
				all = append(all, unseenPart{k.resource.GroupResource(), namespace, status})
			}
			for _, from := range above.Names {
				if status := w.findUnseen(from); status.State != "" && role.showsSources() {
					all = append(all, unseenPart{k.resource.GroupResource(), from, status})
				}
			}
		}
	}
	return all
}

func (ws *watches) describeUnseen(namespace string) []string {
	found := map[string]bool{}
	for _, part := range ws.findUnseen(namespace) {
		where := ""
		if part.namespace != namespace {
			where = " in namespace " + part.namespace
		}
		found[fmt.Sprintf("%s%s: %s", part.resource, where, copies.DescribeStatus(part.status))] = true
	}
	return slices.Sorted(maps.Keys(found))
}

func (ws *watches) lacksRight(namespace string) bool {
	return slices.ContainsFunc(ws.findUnseen(namespace), func(part unseenPart) bool {
		return part.status.State == watchset.Forbidden || errors.Is(part.status.Err, watchset.ErrLimit)
	})
}

// seesAllCopies reports whether the operator knows all copies of narrow kinds in namespace. Of a kind that the API
// server does not serve there are no copies.
func (ws *watches) seesAllCopies(namespace string) bool {
	for _, k := range ws.kinds {
		if !k.IsNarrow() || k.state == copies.KindPending {
			continue
		}
		for role, w := range k.watches {
			if role.showsCopies() && !w.isWide() && w.statuses[namespace].State != watchset.Synced {
				return false
			}
		}
	}
	return true
}

// countUnseen counts the followed namespaces in which nothing of a narrow kind is seen, by the state of the watch
// there.
func (ws *watches) countUnseen(k *watchedKind) map[string]int {
	if !k.IsNarrow() {
		return nil
	}
	states := map[string]string{}
	for _, w := range k.watches {
		for namespace := range ws.followed {
			if status := w.findUnseen(namespace); status.State != "" {
				states[namespace] = string(status.State)
			}
		}
	}
	counts := map[string]int{}
	for _, state := range states {
		counts[state]++
	}
	return counts
}
