package hierarchy

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
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/forest"
)

// managedBy marks the objects that the operator makes for users.
var managedBy = map[string]string{v1alpha1.LabelManagedBy: v1alpha1.OperatorName}

// listUnmet says what keeps the required children of the namespace called name from being there, one obstacle for each that
// is not, in the order of their names.
func listUnmet(s *forest.Snapshot, name string) []forest.Obstacle {
	h, n := s.Hierarchy(name), s.Namespace(name)
	if h == nil || n == nil || n.Terminating {
		return nil
	}
	var obstacles []forest.Obstacle
	for _, child := range slices.Sorted(slices.Values(h.Required)) {
		if o := childObstacle(s, name, child, 0); o.Exists() {
			obstacles = append(obstacles, o)
		}
	}
	return obstacles
}

// childObstacle is what keeps one required child from being there, where so many others of the same parent are under way.
func childObstacle(s *forest.Snapshot, parent, name string, underWay int) forest.Obstacle {
	sub, child, place := s.Sub(parent, name), s.Namespace(name), s.Place(parent)
	why := func(reason v1alpha1.Reason, message string) forest.Obstacle {
		return forest.Obstacle{Reason: reason, Message: message}
	}
	if !place.InTree() {
		return why(v1alpha1.ReasonNotInForest, fmt.Sprintf("required child %s can't be created: %s is in no tree, or halted", name, parent))
	}
	if o := s.NameObstacle(parent, name); o.Reason == v1alpha1.ReasonNamespaceTerminating {
		return why(v1alpha1.ReasonChildPending, o.Message)
	} else if o.Exists() {
		return why(v1alpha1.ReasonChildConflict, o.Message)
	}
	if child != nil && sub != nil && !sub.Deleting {
		return forest.Obstacle{}
	}
	if child == nil {
		if sub != nil && sub.NameLost {
			return why(v1alpha1.ReasonChildConflict, forest.NameLost(name).Message)
		}
		if sub == nil && awaitedByOthers(s, place, name) {
			return why(v1alpha1.ReasonChildConflict, fmt.Sprintf("other namespaces wait for a parent named %q: choose another name for the required child, or have a cluster admin create the SubNamespace", name))
		}
		if o := s.NamingObstacle(parent, name); o.Exists() {
			return why(v1alpha1.ReasonChildConflict, o.Message)
		}
		if o := s.DepthObstacle(parent); o.Exists() {
			return o
		}
		if full := s.NoRoom(place.Path[0], underWay, 1); full != "" {
			return why(v1alpha1.ReasonLimitExceeded, name+": "+full)
		}
	}
	return why(v1alpha1.ReasonChildPending, "SubNamespace "+parent+"/"+name+" is being created")
}

// awaitedByOthers says whether namespaces wait for a parent of that name that did not stand below place: whoever requires such a
// child would get them, and nobody asks whether they may.
func awaitedByOthers(s *forest.Snapshot, place forest.Place, name string) bool {
	path := strings.Join(append(slices.Clone(place.Path), name), "/")
	return slices.ContainsFunc(s.Waiting(name), func(orphan string) bool {
		return s.Namespace(orphan).Annotations[v1alpha1.AnnotationAncestry] != path+"/"+orphan
	})
}

// requireChildren makes the SubNamespaces that a HierarchyConfiguration requires and that nothing stands in the way of.
// What is required no longer stays. Where the API server refuses one, requireChildren returns when to try again.
func (r *Reconciler) requireChildren(ctx context.Context, parent string) (again time.Duration, err error) {
	s := r.Index.Snapshot()
	h, n := s.Hierarchy(parent), s.Namespace(parent)
	missing := missingChildren(s, parent)
	if len(missing) == 0 {
		r.clearRefusal(&r.refused, parent)
		return 0, nil
	}
	asked := apianswer.RequestOf(n.ResourceVersion, h.UID, missing)
	if wait := r.refused.Wait(parent, asked); wait > 0 {
		return wait, nil
	}
	var refused, failed []error
	for _, name := range missing {
		switch err := r.requireChild(ctx, h, name); {
		case err == nil, apianswer.IsGone(err):
		case apianswer.IsRefusal(err):
			refused = append(refused, err)
		default:
			failed = append(failed, err)
		}
	}
	if len(refused) == 0 {
		r.clearRefusal(&r.refused, parent)
		return 0, errors.Join(failed...)
	}
	return r.noteRefusal(ctx, &r.refused, parent, asked, errors.Join(refused...)), errors.Join(failed...)
}

// missingChildren are the required children of parent that have no SubNamespace and that nothing stands in the way of.
func missingChildren(s *forest.Snapshot, parent string) []string {
	h, n := s.Hierarchy(parent), s.Namespace(parent)
	if h == nil || n == nil || n.Terminating {
		return nil
	}
	var missing []string
	underWay := 0
	for _, name := range h.Required {
		old := s.Namespace(name) // one that is going goes first
		if s.Sub(parent, name) != nil {
			if old == nil && !s.Sub(parent, name).NameLost {
				underWay++
			}
			continue
		}
		// A name that strangers have is asked for once, so that the SubNamespace remembers that it was lost.
		lost := s.NameObstacle(parent, name).Reason == v1alpha1.ReasonNameTaken && s.Place(parent).InTree()
		if !lost && (old != nil && old.Terminating || childObstacle(s, parent, name, underWay).Reason != v1alpha1.ReasonChildPending) {
			continue
		}
		if !lost {
			underWay++
		}
		missing = append(missing, name)
	}
	return missing
}

// requireChild makes the SubNamespace of one required child.
func (r *Reconciler) requireChild(ctx context.Context, h *forest.Hierarchy, name string) error {
	parent := h.Namespace
	sub := &v1alpha1.SubNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: parent, Name: name, Labels: managedBy, Finalizers: []string{v1alpha1.FinalizerSubNamespace}}}
	err := r.Client.Create(ctx, sub, client.FieldOwner(v1alpha1.OperatorName))
	if err == nil {
		r.Events.Event(referenceOf(h), corev1.EventTypeNormal, string(v1alpha1.ReasonChildRequested), "SubNamespace "+parent+"/"+name+" was created, because spec.requiredChildren names it")
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making the required SubNamespace %s/%s: %w", parent, name, err)
	}
	return nil
}
