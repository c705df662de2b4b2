package distribute

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// kinds are those that may be distributed.
type kinds struct {
	*core
	all map[schema.GroupKind]*watchedKind
}

// watchedKind is a kind that may be distributed, and what the watch of its copies has shown.
type watchedKind struct {
	schema.GroupVersionKind
	resource schema.GroupVersionResource // as it is served; empty before it was served once
	state    copies.KindState
	failure  error // why the copies were not listed, as the watch has reported last; nil if it has reported no error
}

func newKinds(c *core) *kinds {
	k := &kinds{core: c, all: map[schema.GroupKind]*watchedKind{}}
	for _, gvk := range c.options.Kinds {
		k.all[gvk.GroupKind()] = &watchedKind{GroupVersionKind: gvk, state: copies.KindSyncing}
	}
	return k
}

// findKind returns a kind that may be distributed.
func (ks *kinds) findKind(gk schema.GroupKind) *watchedKind { return ks.all[gk] }

// takeChange takes in the state of a watch, and reports whether the state of the kind has changed.
func (ks *kinds) takeChange(c KindChanged) bool {
	k := ks.all[c.Kind]
	if c.Status.Resource.Resource != "" {
		k.resource = c.Status.Resource
	}
	if c.Status.Err != nil {
		k.failure = c.Status.Err
	}
	was := k.state
	if k.state = k.state.After(c.Status); k.state == was {
		return false
	}
	if k.state == copies.KindDegraded {
		ks.emitOutput(copies.Log{Message: ks.describeUnobserved(k)})
	}
	return true
}

// findScrubParts returns what a pass of the scrub reads of the kinds for which has is true.
func (ks *kinds) findScrubParts(has func(schema.GroupKind) bool) (all []copies.ScrubPart) {
	for gk, k := range ks.all {
		if k.state == copies.KindActive && has(gk) {
			all = append(all, copies.ScrubPart{Kind: k.GroupVersionKind, Resource: k.resource, Namespace: copies.Everywhere})
		}
	}
	return all
}

func (ks *kinds) checkSynced() error {
	for gk, k := range ks.all {
		if k.state == copies.KindSyncing {
			return fmt.Errorf("copies of %s are not synced yet", gk)
		}
	}
	return nil
}

// describeUnobserved returns why the copies of a kind cannot be seen; "" if they can.
func (ks *kinds) describeUnobserved(k *watchedKind) string {
	gk := k.GroupKind()
	switch k.state {
	case copies.KindForbidden:
		return "the operator may not list or watch " + k.Kind + "s: give its ClusterRole get, list and watch on them"
	case copies.KindDegraded:
		if errors.Is(k.failure, watchset.ErrLimit) {
			return fmt.Sprintf("the operator does not watch the copies of %s, and nothing is distributed until it does: informers.maxInformers of "+
				"the configuration is reached; raise it", gk)
		}
		return fmt.Sprintf("the API server has not listed the copies of %s for %s, and nothing is distributed until it does: repair what serves "+
			"the kind, such as the conversion webhook of its CRD", gk, ks.options.DegradedAfter)
	case copies.KindPending:
		return "the API server does not serve " + gk.String()
	}
	return ""
}
