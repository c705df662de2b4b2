package trace

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
	"github.com/warren-tenancy/warren/internal/copies"
)

// Presence describes what exists of a source in a namespace that it could reach.
type Presence string

// The presences. Nested is a copy of another source of that name, or such a source itself.
const (
	HasCopy    Presence = "copy"
	Conflict   Presence = "conflict"
	Unselected Presence = "unselected"
	Waiting    Presence = "waiting"
	Nested     Presence = "another source"
	Unread     Presence = "you may not read it"
)

// Reach is a source with the namespaces that it could reach.
type Reach struct {
	Object Object
	// Mode is the source's mode. From is the source's namespace if the object is itself a copy.
	Mode, From string
	// Problem explains why the object is no source; "" where it is one.
	Problem string
	Places  []Reached
}

// Reached is a namespace that a source could reach.
type Reached struct {
	Namespace string
	Presence  Presence
	// Note has details, such as what to do about a conflict.
	Note string
}

// ReadReach reads the object as metadata, and the objects of its name in the namespaces below it in view. For a copy,
// or an object without the label, it reads only the object.
func ReadReach(ctx context.Context, api client.Reader, view tree.View, kind schema.GroupVersionKind, namespace,
	name string) (*Reach, error) {
	source, err := readMetadata(ctx, api, kind, namespace, name)
	if err != nil {
		return nil, err
	}
	reach := &Reach{Object: Object{kind.Group, kind.Kind, namespace, name},
		Problem: WhyNotCopied(view.Forest, kind.GroupKind(), source)}
	if from, mode, ok := Origin(kind.GroupKind(), source); ok {
		reach.From, reach.Mode = from, mode
		return reach, nil
	}
	slot := copies.Slot{Kind: kind.GroupKind(), Namespace: namespace, Name: name}
	read, ok := copies.Rules{}.SourceOf(slot, source, copies.OptIn)
	if !ok {
		reach.Problem = "it lacks the label " + v1alpha1.LabelPropagate
		return reach, nil
	}
	reach.Mode = read.Mode
	names := namesBelow(view, namespace)
	reach.Places = make([]Reached, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(gather.AtOnce)
	for i, below := range names {
		group.Go(func() error {
			object, err := readMetadata(ctx, api, kind, below, name)
			reach.Places[i] = describeReach(view, kind.GroupKind(), read, slot, below, object)
			switch {
			case failure.Refused(err):
				reach.Places[i] = Reached{Namespace: below, Presence: Unread}
			case err != nil && !apierrors.IsNotFound(err):
				return fmt.Errorf("read %s %s/%s: %w", kind.Kind, below, name, err)
			}
			return nil
		})
	}
	return reach, group.Wait()
}

func readMetadata(ctx context.Context, api client.Reader, kind schema.GroupVersionKind, namespace,
	name string) (*metav1.PartialObjectMetadata, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	if err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		return nil, err
	}
	return object, nil
}

// namesBelow returns the existing namespaces below a namespace, in the order in which trees are drawn.
func namesBelow(view tree.View, namespace string) []string {
	var names []string
	for node := range tree.Existing([]*tree.Node{view.Node(namespace)}) {
		if node.Name != namespace {
			names = append(names, node.Name)
		}
	}
	return names
}

// describeReach describes what exists of a source in a namespace below. object is the object of the source's name
// there; nil if there is none.
func describeReach(view tree.View, kind schema.GroupKind, source *copies.Source, slot copies.Slot, below string,
	object *metav1.PartialObjectMetadata) Reached {
	place := Reached{Namespace: below}
	selected := source.Selector == nil || source.Selector.Matches(labels.Set(view.Forest.SelectableLabels(below)))
	if object != nil {
		from, _, isCopy := Origin(kind, object)
		switch {
		case isCopy && from == slot.Namespace:
			place.Presence = HasCopy
		case isCopy:
			place.Presence, place.Note = Nested, "a copy of that in "+from
		case object.Labels[v1alpha1.LabelPropagate] != "":
			place.Presence, place.Note = Nested, "a source of its own"
		case selected && source.Mode == v1alpha1.ModeCreate:
			place.Presence, place.Note = Conflict, "another object has that name; the source has mode create, so it is left as it is"
		case selected:
			place.Presence, place.Note = Conflict, "another object has that name: rename or delete it, then the operator writes the copy"
		default:
			place.Presence = Unselected
		}
		return place
	}
	if place.Presence = Waiting; !selected {
		place.Presence, place.Note = Unselected, "the source selects only namespaces with "+source.Selector.String()
	} else if halted := view.Forest.Place(below); halted.Halted() {
		place.Note = "the namespace is halted"
	}
	return place
}
