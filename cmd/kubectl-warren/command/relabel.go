package command

import (
	"context"
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readNamespace reads the metadata of a Namespace.
func readNamespace(ctx context.Context, api client.Reader, name string) (*metav1.PartialObjectMetadata, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace, api.Get(ctx, client.ObjectKey{Name: name}, namespace)
}

// labels are changes of the labels of a Namespace; an empty value takes a label off.
type labels map[string]string

// onlyChanges leaves only what differs from what is there: a label that is there without a value is to be taken off, too.
func (l labels) onlyChanges(present map[string]string) labels {
	altered := maps.Clone(l)
	maps.DeleteFunc(altered, func(key, value string) bool {
		now, there := present[key]
		return now == value && there == (value != "")
	})
	return altered
}

// applyTo are the labels as they will be.
func (l labels) applyTo(present map[string]string) map[string]string {
	result := maps.Clone(present)
	for key, value := range l {
		if value == "" {
			delete(result, key)
			continue
		}
		if result == nil {
			result = map[string]string{}
		}
		result[key] = value
	}
	return result
}

// patchFor writes the labels if nobody has changed the Namespace since it was read.
func (l labels) patchFor(resourceVersion string) (client.Patch, error) {
	values := map[string]*string{}
	for key, value := range l {
		values[key] = nil
		if value != "" {
			values[key] = &value
		}
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": resourceVersion, "labels": values}})
	return client.RawPatch(types.MergePatchType, data), err
}

// relabelNamespace reads a Namespace and changes its labels as decide says, which looks again if somebody else changed the Namespace
// meanwhile. changed is false where all was so already. Nothing is sent where that is only rehearsed.
func relabelNamespace(ctx context.Context, api client.Client, name string, c change, decide func(*metav1.PartialObjectMetadata) (labels, error)) (
	namespace *metav1.PartialObjectMetadata, changed bool, err error,
) {
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if namespace, err = readNamespace(ctx, api, name); err != nil {
			return err
		}
		wanted, err := decide(namespace)
		if err != nil {
			return err
		}
		wanted = wanted.onlyChanges(namespace.Labels)
		changed = len(wanted) > 0
		if !changed {
			return nil
		}
		if c.isRehearsed() {
			namespace.Labels = wanted.applyTo(namespace.Labels)
			return nil
		}
		patch, err := wanted.patchFor(namespace.ResourceVersion)
		if err != nil {
			return err
		}
		return c.clientFor(api).Patch(ctx, namespace, patch)
	})
	return namespace, changed, err
}

// printRelabelled prints what became of a Namespace.
func (p *plugin) printRelabelled(namespace *metav1.PartialObjectMetadata, changed bool, c change, operation string) error {
	if !changed {
		operation = "unchanged"
	}
	return p.printDone(namespace, c, operation)
}
