package change

import (
	"context"
	"encoding/json"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// LabelNamespace sets or removes labels of a namespace, and prints what was done.
func LabelNamespace(ctx context.Context, inv *invocation.Invocation, name string, wanted Labels, c Options) error {
	if err := invocation.CheckNamespaces(name); err != nil {
		return err
	}
	api, err := inv.Connect()
	if err != nil {
		return err
	}
	namespace, changed, err := Relabel(ctx, api, name, c,
		func(*metav1.PartialObjectMetadata) (Labels, error) { return wanted, nil })
	if err != nil {
		return err
	}
	return PrintRelabelled(inv, namespace, changed, c, "labelled")
}

// Labels are changes of the labels of a Namespace; an empty value removes a label.
type Labels map[string]string

// onlyChanges returns the changes that differ from the present labels. An empty value removes a label even if its
// present value is empty.
func (l Labels) onlyChanges(present map[string]string) Labels {
	altered := maps.Clone(l)
	maps.DeleteFunc(altered, func(key, value string) bool {
		now, there := present[key]
		return now == value && there == (value != "")
	})
	return altered
}

// applyTo returns the labels after the changes.
func (l Labels) applyTo(present map[string]string) map[string]string {
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

// patchFor returns a patch that sets the labels, and that fails if the Namespace has changed since it was read.
func (l Labels) patchFor(resourceVersion string) (client.Patch, error) {
	values := map[string]*string{}
	for key, value := range l {
		values[key] = nil
		if value != "" {
			values[key] = &value
		}
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": resourceVersion,
		"labels": values}})
	return client.RawPatch(types.MergePatchType, data), err
}

// Relabel reads a Namespace and changes its labels as decide returns them. If the Namespace changes meanwhile, Relabel
// reads it and calls decide again. changed is false if the labels already had these values. With --dry-run=client no
// change is sent.
func Relabel(ctx context.Context, api client.Client, name string, c Options, decide func(*metav1.PartialObjectMetadata) (Labels, error)) (
	namespace *metav1.PartialObjectMetadata, changed bool, err error,
) {
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if namespace, err = gather.ReadNamespace(ctx, api, name); err != nil {
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
		if c.IsRehearsed() {
			namespace.Labels = wanted.applyTo(namespace.Labels)
			return nil
		}
		patch, err := wanted.patchFor(namespace.ResourceVersion)
		if err != nil {
			return err
		}
		return c.ClientFor(api).Patch(ctx, namespace, patch)
	})
	return namespace, changed, err
}

// PrintRelabelled prints the result of Relabel.
func PrintRelabelled(inv *invocation.Invocation, namespace *metav1.PartialObjectMetadata, changed bool, c Options,
	operation string) error {
	if !changed {
		operation = "unchanged"
	}
	return PrintDone(inv, namespace, c, operation)
}
