package rules_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/rules"
)

// A copy that lacks one of these means something else than its source: for example, it is open to the public.
var meaningful = []string{
	"nginx.ingress.kubernetes.io/whitelist-source-range", "nginx.ingress.kubernetes.io/auth-url", "ingress.kubernetes.io/auth-type",
	"alb.ingress.kubernetes.io/scheme", "kubernetes.io/ingress.class", "kubernetes.io/tls-acme", "cert-manager.io/cluster-issuer",
	"service.beta.kubernetes.io/aws-load-balancer-internal", "service.beta.kubernetes.io/load-balancer-source-ranges",
	"service.kubernetes.io/topology-mode", "networking.gke.io/load-balancer-type", "kubernetes.io/enforce-mountable-secrets",
	"volume.beta.kubernetes.io/storage-class", "autoscaling.alpha.kubernetes.io/behavior", "kubernetes.io/description",
}

// Each of these is the state of the one object that has it, or by it a tool would take the copy for its own.
var ofOneObject = []string{
	"kubectl.kubernetes.io/last-applied-configuration", "applyset.kubernetes.io/contains-group-kinds",
	"control-plane.alpha.kubernetes.io/leader",
	"deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation",
	"autoscaling.alpha.kubernetes.io/conditions", "autoscaling.alpha.kubernetes.io/current-metrics",
	"pv.kubernetes.io/bind-completed", "volume.kubernetes.io/selected-node", "volume.kubernetes.io/storage-provisioner",
	"volume.beta.kubernetes.io/storage-provisioner",
	"argocd.argoproj.io/tracking-id", "meta.helm.sh/release-name", "kustomize.toolkit.fluxcd.io/prune",
}

func TestDefaultsForCopies(t *testing.T) {
	t.Run("PROP-P13 by default, copies have annotations of Kubernetes' domain that give the source a meaning; they lack those that hold "+
		"one object's state or belong to Argo CD, Helm or Flux", func(t *testing.T) {
		notes := map[string]any{}
		for _, key := range slices.Concat(meaningful, ofOneObject) {
			notes[key] = "x"
		}
		slot := copies.Slot{Kind: schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}, Namespace: "acme", Name: "s"}
		body, err := copies.Render(slot, map[string]any{"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
			"metadata": map[string]any{"name": "s", "annotations": notes}}, rules.ForCopies(configfile.Default()))
		if err != nil {
			t.Fatal(err)
		}
		_, annotations := body.Metadata()
		if diff := cmp.Diff(slices.Sorted(slices.Values(meaningful)), slices.Sorted(maps.Keys(annotations))); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}
