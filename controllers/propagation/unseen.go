package propagation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/text"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// What is told of the namespaces in which a kind can't be seen that is watched as far as the rights go.

// unseen is why nothing is seen in namespace; the zero Status where it is seen, or about to be.
func (f *narrowFeed) unseen(namespace string) watchset.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, looked := f.states[namespace]
	wide := f.states[propagate.Everywhere]
	switch {
	case wide.State == watchset.Synced, now.State == watchset.Synced:
		return watchset.Status{}
	case !looked && wide.State != watchset.Forbidden: // where it is forbidden, each namespace is looked at by itself
		return wide
	}
	return now
}

// unseenIn are the states of all namespaces that are followed and in which nothing is seen.
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

// describeUnseen is a sentence for each kind that is watched as far as the rights go, and of which nothing is seen in namespace, or no
// source in one of those above it. They are in alphabetical order.
func (k *kinds) describeUnseen(namespace string, above []string) []string {
	found := map[string]bool{}
	for resource, feeds := range k.narrowFeeds() {
		for _, f := range feeds {
			if now := f.unseen(namespace); now.State != "" {
				found[fmt.Sprintf("%s: %s", resource, describeUnseen(now))] = true
			}
			for _, from := range above {
				if now := f.unseen(from); now.State != "" && f.bringsSources() {
					found[fmt.Sprintf("%s in namespace %s: %s", resource, from, describeUnseen(now))] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
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

// narrowFeeds are those that are watched now, by resource.
func (k *kinds) narrowFeeds() map[schema.GroupResource][]*narrowFeed {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := map[schema.GroupResource][]*narrowFeed{}
	for _, run := range k.runs {
		if len(run.narrow) > 0 {
			all[run.mapping.Resource.GroupResource()] = run.narrow
		}
	}
	return all
}

func (k *kinds) feedsOf(run *kindRun) []*narrowFeed {
	k.mu.Lock()
	defer k.mu.Unlock()
	return run.narrow
}

// seeCopies says whether all copies in namespace are known of the kinds that are watched as far as the rights go. Of a kind that is not
// served there are none.
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

// isWide says whether all of a kind is seen everywhere.
func (k *kinds) isWide(run *kindRun) bool {
	return !slices.ContainsFunc(k.feedsOf(run), func(f *narrowFeed) bool { return !f.isWide() })
}
