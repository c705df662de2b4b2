package migrate

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readDeployments finds the peer's Deployments. If no namespace is named, the peer is deleted: a Deployment with such a
// name elsewhere is not the peer's.
func (r *reader) readDeployments(ctx context.Context, c *Cluster) error {
	if r.peerNamespace == "" {
		return nil
	}
	deployments, _, err := r.listPeerObjects(ctx, "apps", "Deployment", client.InNamespace(r.peerNamespace))
	if err != nil {
		return err
	}
	for _, d := range deployments {
		if !strings.HasPrefix(d.GetName(), r.peer.prefix) ||
			r.peer.bystander != "" && strings.HasPrefix(d.GetName(), r.peer.bystander) {
			continue
		}
		wanted, found, _ := unstructured.NestedInt64(d.Object, "spec", "replicas")
		if !found {
			wanted = 1 // the API server's default
		}
		running, err := r.countExistingPods(ctx, d)
		if err != nil {
			return err
		}
		c.Peer.Deployments = append(c.Peer.Deployments,
			Deployment{partialMetadataOf(d), wanted, running, containerArguments(d)})
	}
	return nil
}

// countExistingPods returns how many Pods of a Deployment exist. The Deployment's status doesn't count Pods that are
// being deleted. Their programs run on, and may still write, until the kubelet has stopped them.
func (r *reader) countExistingPods(ctx context.Context, deployment unstructured.Unstructured) (int64, error) {
	fields, _, _ := unstructured.NestedMap(deployment.Object, "spec", "selector")
	given := &metav1.LabelSelector{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, given)
	if err != nil {
		return 0, fmt.Errorf("selector of Deployment %s/%s: %w", deployment.GetNamespace(), deployment.GetName(), err)
	}
	selector, err := metav1.LabelSelectorAsSelector(given)
	if err != nil {
		return 0, fmt.Errorf("selector of Deployment %s/%s: %w", deployment.GetNamespace(), deployment.GetName(), err)
	}
	pods, _, err := r.listPeerObjects(ctx, "", "Pod", client.InNamespace(deployment.GetNamespace()),
		client.MatchingLabelsSelector{Selector: selector})
	reported, _, _ := unstructured.NestedInt64(deployment.Object, "status", "replicas")
	return max(reported, int64(len(pods))), err
}

// containerArguments returns the commands and arguments of the containers of a Deployment.
func containerArguments(deployment unstructured.Unstructured) (args []string) {
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	for _, item := range containers {
		container, _ := item.(map[string]any)
		for _, field := range []string{"command", "args"} {
			given, _, _ := unstructured.NestedStringSlice(container, field)
			args = append(args, given...)
		}
	}
	return args
}
