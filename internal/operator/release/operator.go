package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/pager"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// stopOperator scales the Deployment to 0 and waits until its pods are gone. If there is no Deployment, it does nothing: then a person runs
// the operator by hand, and must stop it.
func (r *releaser) stopOperator(ctx context.Context) error {
	deployments := r.api.AppsV1().Deployments(r.namespace)
	d, err := deployments.Patch(ctx, v1alpha1.OperatorAccount, types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("scaling Deployment %s/%s to 0: %w", r.namespace, v1alpha1.OperatorAccount, err)
	}
	selector := metav1.FormatLabelSelector(d.Spec.Selector)
	var left []string
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, podsTimeout, true, func(ctx context.Context) (bool, error) {
		pods, err := r.api.CoreV1().Pods(r.namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return false, err
		}
		left = nil
		for i := range pods.Items {
			left = append(left, pods.Items[i].Name)
		}
		return len(left) == 0, nil
	})
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted while the operator's pods end; repeat the command to go on")
	case wait.Interrupted(err):
		return fmt.Errorf("pods %s in %s still run after %s: find out why (kubectl describe pod), then repeat the command",
			strings.Join(left, ", "), r.namespace, podsTimeout)
	case err != nil:
		return fmt.Errorf("waiting until the operator's pods are gone: %w", err)
	}
	r.printLine("scaled Deployment %s/%s to 0; no pod of it is left", r.namespace, v1alpha1.OperatorAccount)
	return nil
}

var (
	lnamespaces   = v1alpha1.GroupVersion.WithResource("lnamespaces")
	subNamespaces = v1alpha1.GroupVersion.WithResource("subnamespaces")
)

// finalizedKinds are the kinds that carry a finalizer of ours.
var finalizedKinds = []struct {
	resource        schema.GroupVersionResource
	kind, finalizer string
}{
	{subNamespaces, "SubNamespaces", v1alpha1.FinalizerSubNamespace},
	{lnamespaces, "LNamespaces", v1alpha1.FinalizerLNamespace},
}

// writers is how many objects are changed or deleted at the same time.
const writers = 16

// removeFinalizers takes our finalizers off all objects, and then does so once more: if an operator still runs somewhere, the finalizers
// have come back, which is an error.
func (r *releaser) removeFinalizers(ctx context.Context) error {
	for _, h := range finalizedKinds {
		freed, err := r.freeObjects(ctx, h.resource, h.finalizer)
		if err != nil {
			return fmt.Errorf("taking finalizer %s off %s: %w", h.finalizer, h.kind, err)
		}
		if freed > 0 {
			r.printLine("took the finalizer off %d %s", freed, h.kind)
		}
	}
	for _, h := range finalizedKinds {
		again, err := r.freeObjects(ctx, h.resource, h.finalizer)
		if err != nil {
			return fmt.Errorf("taking finalizer %s off %s: %w", h.finalizer, h.kind, err)
		}
		if again > 0 {
			return fmt.Errorf("%d %s got their finalizer back: an operator still runs, in %s or elsewhere; stop it, then repeat the command", again,
				h.kind, r.namespace)
		}
	}
	return nil
}

// freeObjects takes a finalizer off all objects of a resource, page by page, and returns how many had it.
func (r *releaser) freeObjects(ctx context.Context, resource schema.GroupVersionResource, finalizer string) (int, error) {
	freed := 0
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	err := r.eachObject(ctx, resource, metav1.ListOptions{}, func(object *metav1.PartialObjectMetadata) {
		if slices.Contains(object.Finalizers, finalizer) {
			freed++
			group.Go(func() error { return r.letGo(inGroup, resource, object, finalizer) })
		}
	})
	if failed := group.Wait(); failed != nil {
		return freed, failed
	}
	return freed, err
}

// eachObject calls do with the metadata of every object of a resource that options select. A resource whose CRD is absent has none.
func (r *releaser) eachObject(ctx context.Context, resource schema.GroupVersionResource, options metav1.ListOptions,
	do func(*metav1.PartialObjectMetadata)) error {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return r.metadata.Resource(resource).List(ctx, options)
	})
	err := pages.EachListItem(ctx, options, func(object runtime.Object) error {
		do(object.(*metav1.PartialObjectMetadata))
		return nil
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (r *releaser) countObjects(ctx context.Context, resource schema.GroupVersionResource) (n int, err error) {
	err = r.eachObject(ctx, resource, metav1.ListOptions{}, func(*metav1.PartialObjectMetadata) { n++ })
	if err != nil {
		err = fmt.Errorf("counting %s: %w", resource.Resource, err)
	}
	return n, err
}

// attempts bounds how often one object is read again because somebody else changed its finalizers meanwhile.
const attempts = 10

// letGo takes one finalizer off one object. Its patch fails if the finalizer isn't at the index where it was seen, so that a finalizer of
// somebody else is never lost.
func (r *releaser) letGo(ctx context.Context, resource schema.GroupVersionResource, object *metav1.PartialObjectMetadata,
	finalizer string) error {
	objects, key := r.metadata.Resource(resource).Namespace(object.Namespace),
		types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	err := errors.New("its finalizers change all the time")
	for range attempts {
		i := slices.Index(object.Finalizers, finalizer)
		if i < 0 {
			return nil
		}
		_, failed := objects.Patch(ctx, key.Name, types.JSONPatchType, finalizerPatch(i, finalizer),
			metav1.PatchOptions{FieldManager: v1alpha1.OperatorName})
		if apierrors.IsInvalid(failed) || apierrors.IsConflict(failed) { // the API server answers 422 when the test in the patch fails
			object, failed = objects.Get(ctx, key.Name, metav1.GetOptions{})
			if failed == nil {
				continue
			}
		}
		if apierrors.IsNotFound(failed) {
			return nil
		}
		err = failed
		break
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", key, err)
}

// finalizerPatch returns a JSON patch that removes finalizer at index place, and fails if another finalizer is there.
func finalizerPatch(place int, finalizer string) []byte {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value string `json:"value,omitempty"`
	}
	path := fmt.Sprintf("/metadata/finalizers/%d", place)
	patch, err := json.Marshal([]operation{{"test", path, finalizer}, {"remove", path, ""}})
	if err != nil { // strings can always be marshalled
		panic(err)
	}
	return patch
}
