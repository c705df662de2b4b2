package devcluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// installWebhooks applies webhook configurations with a free port.
func (w *World) installWebhooks(ctx context.Context, configurations Manifests) error {
	port, err := process.FreePort()
	if err != nil {
		return err
	}
	w.WebhookPort, w.options.Operator.WebhookPort = port, port
	if err := configurations.callAt(port); err != nil {
		return err
	}
	return Apply(ctx, w.Config(controlplane.Admin), configurations)
}

// callAt sets the port at which the API server calls the operator, in place of the port of overlay loopback.
func (m Manifests) callAt(port int) error {
	for _, u := range m {
		webhooks, _, err := unstructured.NestedSlice(u.Object, "webhooks")
		if err != nil {
			return fmt.Errorf("reading %s %s: %w", u.GetKind(), u.GetName(), err)
		}
		for _, w := range webhooks {
			if err := unstructured.SetNestedField(w.(map[string]any), int64(port), "clientConfig", "service", "port"); err != nil {
				return fmt.Errorf("changing the port of %s %s: %w", u.GetKind(), u.GetName(), err)
			}
		}
		if err := unstructured.SetNestedSlice(u.Object, webhooks, "webhooks"); err != nil {
			return fmt.Errorf("changing the port of %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	return nil
}

func callsWebhooks(u *unstructured.Unstructured) bool {
	return u.GetKind() == "ValidatingWebhookConfiguration" || u.GetKind() == "MutatingWebhookConfiguration"
}

// waitForWebhooks waits until the API server reaches the webhooks: it learns of a certificate a moment after the operator does.
func (w *World) waitForWebhooks(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		probe := &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: "is-the-webhook-there"}}
		last = w.Admin().Create(ctx, probe, client.DryRunAll)
		return last == nil || !strings.Contains(last.Error(), "failed calling webhook"), nil
	})
	if err != nil {
		return fmt.Errorf("waiting until the API server reaches the webhooks: %w (%w)", err, last)
	}
	return nil
}
