package preview

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/rules"
)

// A loss of one sort is large if it exceeds both of these limits.
const (
	fewLosses    = 20
	lossFraction = 10 // one in ten
)

// Loss is how many things of one sort a change of the configuration takes away.
type Loss struct {
	What string // the sort, in the plural
	Lost int
	Of   int
}

// Large reports whether the loss is so large that the administrator must confirm it.
func (l Loss) Large() bool { return l.Lost > fewLosses && l.Lost*lossFraction > l.Of }

func (l Loss) String() string { return fmt.Sprintf("%d of %d %s", l.Lost, l.Of, l.What) }

// Losses returns what a change from configuration old to now would take away: copies, copied RoleBindings, and the places and keys
// (labels, annotations) of namespaces. unread are the kinds whose copies could not be counted because the caller may not list them.
func Losses(ctx context.Context, api client.Client, old, now *config.OperatorConfiguration,
	operatorNamespace string) (losses []Loss, unread []schema.GroupKind, err error) {
	before, err := readForest(ctx, api, rules.ForForest(old, operatorNamespace))
	if err != nil {
		return nil, nil, err
	}
	after := before.WithRules(rules.ForForest(now, operatorNamespace))
	r := newReading(api, after, now)
	r.deletions = true
	plan, err := r.plan(ctx, after, now)
	if err != nil {
		return nil, nil, err
	}
	bindings, others := Loss{What: "copied RoleBindings"}, Loss{What: "other copies"}
	of := func(kind schema.GroupKind) *Loss {
		if copies.GivesRights(copies.Slot{Kind: kind}) {
			return &bindings
		}
		return &others
	}
	for kind, number := range r.copies {
		of(kind).Of += number
	}
	for _, w := range plan.Writes {
		if w.Verb == Delete {
			of(schema.GroupKind{Group: w.Group, Kind: w.Kind}).Lost++
		}
	}
	return []Loss{lossOfPlaces(before, after), bindings, others}, r.unread, nil
}

// lossOfPlaces counts the namespaces that the operator would stop managing, or that would lose a label or annotation.
func lossOfPlaces(before, after *forest.Snapshot) Loss {
	loss := Loss{What: "places or keys of namespaces"}
	for name := range before.All() {
		if place := before.Place(name); !place.InTree() || place.Halted() {
			continue
		}
		loss.Of++
		if place := after.Place(name); !place.InTree() || place.Halted() || losesKeys(forest.DesiredChange(after, name)) {
			loss.Lost++
		}
	}
	return loss
}

func losesKeys(change forest.Change) bool {
	for _, keys := range []map[string]*string{change.Labels, change.Annotations} {
		for _, value := range keys {
			if value == nil {
				return true
			}
		}
	}
	return false
}

// describeLarge names the large losses; "" if there is none.
func describeLarge(losses []Loss) string {
	var large []string
	for _, loss := range losses {
		if loss.Large() {
			large = append(large, loss.String())
		}
	}
	return strings.Join(large, ", ")
}
