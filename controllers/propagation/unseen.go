package propagation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/text"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// The functions of this file say where, and why, the operator can't see the objects of a narrow kind; see Kind.isNarrow.

// unseenIn returns the states of all followed namespaces in which the operator sees nothing.
func (f *narrowFeed) unseenIn() map[string]watchset.State {
	all := map[string]watchset.State{}
	for namespace := range f.followed.all {
		if now := f.unseen(namespace); now.State != "" {
			all[namespace] = now.State
		}
	}
	return all
}

// describeUnseen says why a watch shows nothing, in a few words.
func describeUnseen(now watchset.Status) string {
	switch {
	case now.State == watchset.Forbidden:
		return "forbidden, missing " + strings.Join(now.Missing, ", ")
	case errors.Is(now.Err, watchset.ErrLimit):
		return "not watched, for informers.maxInformers or informers.maxNamespaces is reached"
	case now.Err != nil:
		return text.Cut(now.Err.Error(), mostFailure)
	}
	return strings.ToLower(string(now.State))
}

// unseenPart is a narrow kind's objects in one namespace, which the operator can't see, and why.
type unseenPart struct {
	resource  schema.GroupResource
	namespace string
	now       watchset.Status
}

// listUnseen returns the narrow kinds of which the operator sees nothing in namespace, or no source in one of the namespaces above.
func (k *kinds) listUnseen(namespace string, above []string) []unseenPart {
	var all []unseenPart
	for resource, feeds := range k.narrowFeeds() {
		for _, f := range feeds {
			if now := f.unseen(namespace); now.State != "" {
				all = append(all, unseenPart{resource, namespace, now})
			}
			for _, from := range above {
				if now := f.unseen(from); now.State != "" && f.bringsSources() {
					all = append(all, unseenPart{resource, from, now})
				}
			}
		}
	}
	return all
}

// describeUnseen returns a sentence for each part of listUnseen, in alphabetical order.
func (k *kinds) describeUnseen(namespace string, above []string) []string {
	found := map[string]bool{}
	for _, part := range k.listUnseen(namespace, above) {
		where := ""
		if part.namespace != namespace {
			where = " in namespace " + part.namespace
		}
		found[fmt.Sprintf("%s%s: %s", part.resource, where, describeUnseen(part.now))] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// mayNotSee reports whether a right or room is missing to see a narrow kind in namespace, or its sources in one of the namespaces above. A
// watch that fails for another reason, as all do while the API server is overloaded, does not count.
func (k *kinds) mayNotSee(namespace string, above []string) bool {
	return slices.ContainsFunc(k.listUnseen(namespace, above), func(part unseenPart) bool {
		return part.now.State == watchset.Forbidden || errors.Is(part.now.Err, watchset.ErrLimit)
	})
}

// countUnseen counts the namespaces in which nothing of a kind is seen, by state.
func (k *kinds) countUnseen(run *kindRun) map[watchset.State]int {
	namespaces := map[string]watchset.State{}
	for _, f := range k.feedsOf(run) {
		maps.Copy(namespaces, f.unseenIn())
	}
	counts := map[watchset.State]int{}
	for _, state := range namespaces {
		counts[state]++
	}
	return counts
}

// seeCopies says whether the operator knows all copies of narrow kinds in namespace. Of a kind that the API server doesn't serve there are no
// copies.
func (k *kinds) seeCopies(namespace string) bool {
	for _, run := range k.list() {
		if !run.kind.isNarrow() || k.stateOf(run.kind.GroupKind()) == kindPending {
			continue
		}
		feeds := k.feedsOf(run)
		if len(feeds) == 0 || slices.ContainsFunc(feeds, func(f *narrowFeed) bool { return f.bringsCopies() && !f.isSynced(namespace) }) {
			return false
		}
	}
	return true
}

// isWide says whether the operator sees the objects of a narrow kind in the whole cluster.
func (k *kinds) isWide(run *kindRun) bool {
	return !slices.ContainsFunc(k.feedsOf(run), func(f *narrowFeed) bool { return !f.isWide() })
}
