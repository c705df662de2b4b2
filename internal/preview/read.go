package preview

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/paging"
)

// pageSize is how many objects a page of a list has; each object may have 1 MiB.
const pageSize = 100

// reading reads the objects of the configured kinds into a copies.World.
type reading struct {
	api   client.Client
	rules copies.Rules
	world *copies.World
	notes []string
	// copies counts the copies that the operator wrote, by kind.
	copies map[schema.GroupKind]int
	// deletions reports that the caller wants planned deletions only. They don't depend on content, so only metadata is read.
	deletions bool
	// unread are the kinds that may not be listed.
	unread []schema.GroupKind
}

// readKind reads a kind's sources and copies. Unless only deletions are wanted, it also reads the metadata of the kind's other objects,
// which may be in the way of copies. For a kind that can't be read, it adds a note, and nothing is planned.
func (r *reading) readKind(ctx context.Context, kind config.PropagatedKind) error {
	gk, mode := schema.GroupKind{Group: kind.Group, Kind: kind.Kind}, copies.KindMode(kind.Mode)
	mapping, err := apianswer.MappingOf(r.api.RESTMapper(), gk.WithVersion(kind.Version))
	if meta.IsNoMatchError(err) {
		r.notes = append(r.notes, fmt.Sprintf("%s: the API server doesn't serve this kind", gk))
		return nil
	} else if err != nil {
		return fmt.Errorf("looking for kind %s: %w", gk, err)
	}
	gvk := mapping.GroupVersionKind
	bodies := map[copies.Slot]*copies.Body{}
	source := func(object client.Object) error { return r.takeSource(gvk, mode, object, bodies) }
	copied := func(object client.Object) error { return r.takeCopy(gvk, object, bodies) }
	list := objectsOf(gvk)
	if r.deletions {
		list = metadataOf(gvk)
	}
	other := func(object client.Object) error { return r.takeOther(gvk, object) }
	switch mode {
	case copies.All:
		err = paging.Each(ctx, r.api, list, pageSize, source)
	case copies.OptIn:
		err = paging.Each(ctx, r.api, list, pageSize, source, client.HasLabels{v1alpha1.LabelPropagate})
	}
	if err == nil {
		err = paging.Each(ctx, r.api, list, pageSize, copied, client.HasLabels{v1alpha1.LabelInheritedFrom})
	}
	if err == nil && mode != copies.Remove && !r.deletions {
		err = paging.Each(ctx, r.api, metadataOf(gvk), pageSize, other)
	}
	switch {
	case apierrors.IsForbidden(err):
		r.world.ForgetKind(gk)
		r.unread = append(r.unread, gk)
		r.notes = append(r.notes, fmt.Sprintf("%s: you may not list this kind in all namespaces", gk))
		return nil
	case err != nil:
		return fmt.Errorf("reading %s: %w", gk, err)
	}
	r.world.SetKind(gk, mode, true)
	return nil
}

func objectsOf(kind schema.GroupVersionKind) client.ObjectList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

func metadataOf(kind schema.GroupVersionKind) client.ObjectList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

func slotOf(kind schema.GroupVersionKind, object metav1.Object) copies.Slot {
	return copies.Slot{Kind: kind.GroupKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
}

// takeSource adds an object to the world if it is a source, and the body of its copies to bodies.
func (r *reading) takeSource(kind schema.GroupVersionKind, mode copies.KindMode, read runtime.Object,
	bodies map[copies.Slot]*copies.Body) error {
	of := read.(metav1.Object)
	slot := slotOf(kind, of)
	s, ok := r.rules.SourceOf(slot, of, mode)
	if !ok || copies.UnlabelledFrom(r.world.Forest, slot, of) != "" {
		return nil
	}
	object, whole := read.(*unstructured.Unstructured)
	if !whole {
		r.world.PutSource(slot, s)
		return nil
	}
	body, err := copies.Render(slot, object.Object, r.rules)
	if err != nil {
		return err
	}
	s.TakeBody(body)
	bodies[slot] = body
	r.world.PutSource(slot, s)
	return nil
}

// takeCopy adds a copy to r.world. If the operator wrote the copy, and copy and source were read whole, it also compares the copy's content
// with its source's in bodies.
func (r *reading) takeCopy(kind schema.GroupVersionKind, read runtime.Object, bodies map[copies.Slot]*copies.Body) error {
	metadata := meta.AsPartialObjectMetadata(read.(metav1.Object))
	slot := slotOf(kind, metadata)
	c := r.rules.CopyOf(slot, metadata)
	if c.Ours {
		r.copies[slot.Kind]++
	}
	c.Drifted, c.Digest = c.Marked, 1 // the content is compared below, so the planner needs no digest
	object, isWhole := read.(*unstructured.Unstructured)
	from := bodies[slot.At(c.From)]
	if from == nil || !c.Ours || !isWhole {
		r.world.PutCopy(slot, c)
		return nil
	}
	whole := object.DeepCopy().Object
	found, err := copies.Render(slot.At(c.From), object.Object, r.rules)
	if err != nil {
		return err
	}
	c.Drifted = c.Drifted || from.Content == c.Hash.Content && from.Differs(found, c.Foreign)
	r.world.PutCopy(slot, c)
	if !c.Access {
		return nil
	}
	withdrawal, err := from.Withdraw(slot, whole)
	if err == nil && !withdrawal.Remove && withdrawal.Body == nil {
		r.world.Copies.SetCompared(slot, from.Content) // the copy grants nothing that its source doesn't grant
	}
	return err
}

// takeOther adds an object that is neither source nor copy to the world: it may be in the way of a copy, or be a copy whose label
// somebody removed.
func (r *reading) takeOther(kind schema.GroupVersionKind, read runtime.Object) error {
	metadata := read.(*metav1.PartialObjectMetadata)
	slot := slotOf(kind, metadata)
	if r.world.Sources.At(slot) != nil || r.world.Copies.At(slot) != nil {
		return nil
	}
	if from := copies.UnlabelledFrom(r.world.Forest, slot, metadata); from != "" {
		metav1.SetMetaDataLabel(&metadata.ObjectMeta, v1alpha1.LabelInheritedFrom, from)
		c := r.rules.CopyOf(slot, metadata)
		c.Drifted = true
		r.world.PutCopy(slot, c)
		return nil
	}
	r.world.PutCopy(slot, &copies.Copy{UID: string(metadata.UID), ResourceVersion: metadata.ResourceVersion})
	return nil
}
