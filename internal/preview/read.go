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
	"github.com/warren-tenancy/warren/internal/paging"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// pageSize is how many objects one answer holds; each may have a MiB.
const pageSize = 100

// reading takes the objects of the configured kinds into a world.
type reading struct {
	api   client.Client
	rules propagate.Rules
	world *propagate.World
	notes []string
	// copies are how many there are of each kind.
	copies map[string]int
	// deletions says that only these are asked for: they don't depend on content, so metadata are read alone.
	deletions bool
	// bindings are RoleBindings in the roots of tenants as they would be, where they are to be written; nil: to be deleted.
	bindings map[propagate.Slot]*unstructured.Unstructured
	// unread are the kinds that may not be listed.
	unread []schema.GroupKind
}

// readKind reads what is propagated of a kind, what was copied, and, by its metadata, what else could be in the way. A kind that can't be
// read is noted: nothing is planned for it.
func (r *reading) readKind(ctx context.Context, kind config.PropagatedKind) error {
	gk, mode := schema.GroupKind{Group: kind.Group, Kind: kind.Kind}, propagate.KindMode(kind.Mode)
	mapping, err := apianswer.MappingOf(r.api.RESTMapper(), gk.WithVersion(kind.Version))
	if meta.IsNoMatchError(err) {
		r.notes = append(r.notes, fmt.Sprintf("%s: the API server doesn't serve this kind", gk))
		return nil
	} else if err != nil {
		return fmt.Errorf("looking for kind %s: %w", gk, err)
	}
	gvk := mapping.GroupVersionKind
	bodies := map[propagate.Slot]*propagate.Body{}
	source := func(object client.Object) error {
		if _, replaced := r.bindings[slotOf(gvk, object)]; replaced {
			return nil
		}
		return r.takeSource(gvk, mode, object, bodies)
	}
	copied := func(object client.Object) error { return r.takeCopy(gvk, object, bodies) }
	list := objectsOf(gvk)
	if r.deletions {
		list = metadataOf(gvk)
	}
	other := func(object client.Object) error { return r.takeOther(gvk, object) }
	switch mode {
	case propagate.All:
		err = paging.Each(ctx, r.api, list, pageSize, source)
	case propagate.OptIn:
		err = paging.Each(ctx, r.api, list, pageSize, source, client.HasLabels{v1alpha1.LabelPropagate})
	}
	for slot, binding := range r.bindings {
		if err == nil && slot.Kind == gk && binding != nil && mode != propagate.Remove {
			err = r.takeSource(gvk, mode, binding, bodies)
		}
	}
	if err == nil {
		err = paging.Each(ctx, r.api, list, pageSize, copied, client.HasLabels{v1alpha1.LabelInheritedFrom})
	}
	if err == nil && mode != propagate.Remove && !r.deletions {
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

func slotOf(kind schema.GroupVersionKind, object metav1.Object) propagate.Slot {
	return propagate.Slot{Kind: kind.GroupKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
}

// takeSource takes an object in if it is a source, with what would be written from it.
func (r *reading) takeSource(kind schema.GroupVersionKind, mode propagate.KindMode, read runtime.Object, bodies map[propagate.Slot]*propagate.Body) error {
	of := read.(metav1.Object)
	slot := slotOf(kind, of)
	s, ok := r.rules.SourceOf(slot, of, mode)
	if !ok || r.world.UnlabelledFrom(slot, of) != "" {
		return nil
	}
	object, whole := read.(*unstructured.Unstructured)
	if !whole {
		r.world.PutSource(slot, s)
		return nil
	}
	body, err := propagate.Render(slot, object.Object, r.rules)
	if err != nil {
		return err
	}
	s.Content, s.Meta, s.Size = body.Content, body.Meta, body.Size
	if s.Excluded == "" {
		s.Excluded = body.Excluded
	}
	bodies[slot] = body
	r.world.PutSource(slot, s)
	return nil
}

// takeCopy takes a copy in, and says whether it still is what its source says.
func (r *reading) takeCopy(kind schema.GroupVersionKind, read runtime.Object, bodies map[propagate.Slot]*propagate.Body) error {
	slot := slotOf(kind, read.(metav1.Object))
	metadata, err := metadataOfObject(read)
	if err != nil {
		return err
	}
	c := r.rules.CopyOf(slot, metadata)
	if c.Ours {
		r.copies[slot.Kind.Kind]++
	}
	c.Drifted, c.Digest = c.Marked, 1 // compared below: nothing is left to be found out
	object, isWhole := read.(*unstructured.Unstructured)
	from := bodies[slot.At(c.From)]
	if from == nil || !c.Ours || !isWhole {
		r.world.PutCopy(slot, c)
		return nil
	}
	whole := object.DeepCopy().Object
	found, err := propagate.Render(slot.At(c.From), object.Object, r.rules)
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
		r.world.SetCompared(slot, from.Content) // it gives nothing that its source doesn't give
	}
	return err
}

// takeOther takes in what is neither source nor copy: it may be in the way of a copy, or be one whose label somebody took off.
func (r *reading) takeOther(kind schema.GroupVersionKind, read runtime.Object) error {
	metadata := read.(*metav1.PartialObjectMetadata)
	slot := slotOf(kind, metadata)
	if _, replaced := r.bindings[slot]; replaced || r.world.Source(slot) != nil || r.world.Copy(slot) != nil {
		return nil
	}
	if from := r.world.UnlabelledFrom(slot, metadata); from != "" {
		metav1.SetMetaDataLabel(&metadata.ObjectMeta, v1alpha1.LabelInheritedFrom, from)
		c := r.rules.CopyOf(slot, metadata)
		c.Drifted = true
		r.world.PutCopy(slot, c)
		return nil
	}
	r.world.PutCopy(slot, &propagate.Copy{UID: string(metadata.UID), ResourceVersion: metadata.ResourceVersion})
	return nil
}

// metadataOfObject is the metadata of an object, read whole or not.
func metadataOfObject(read runtime.Object) (*metav1.PartialObjectMetadata, error) {
	object, whole := read.(*unstructured.Unstructured)
	if !whole {
		return read.(*metav1.PartialObjectMetadata), nil
	}
	metadata := &metav1.PartialObjectMetadata{}
	content := map[string]any{"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "metadata": object.Object["metadata"]}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, metadata); err != nil {
		return nil, fmt.Errorf("reading the metadata of %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return metadata, nil
}
