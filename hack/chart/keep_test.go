package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// checkDrain looks at all PodDisruptionBudgets of the chart.
func (h helm) checkDrain(t *testing.T) {
	objects, stderr := h.template(t, "controller.replicas=1", "controller.config.billing.driver=sqlite")
	if stderr != "" {
		t.Fatal(stderr)
	}
	found := 0
	for name, object := range objects {
		if !strings.HasPrefix(name, "PodDisruptionBudget ") {
			continue
		}
		found++
		spec, _, _ := unstructured.NestedMap(object, "spec")
		if spec["minAvailable"] != nil || fmt.Sprint(spec["maxUnavailable"]) != "1" {
			t.Errorf("%s: minAvailable %v, maxUnavailable %v: want maxUnavailable 1 alone", name, spec["minAvailable"], spec["maxUnavailable"])
		}
	}
	if found == 0 {
		t.Error("the chart has no PodDisruptionBudget")
	}
}

// checkLedger looks at the text that Helm applies, because template drops what Helm alone reads.
func (h helm) checkLedger(t *testing.T) {
	manifests, stderr := h.render(t, "controller.config.billing.driver=sqlite",
		"--show-only=templates/persistentvolumeclaim_warren-billing.yaml")
	if stderr != "" {
		t.Fatal(stderr)
	}
	for _, line := range []string{"helm.sh/resource-policy: keep", "argocd.argoproj.io/sync-options: Prune=false,Delete=false",
		"kustomize.toolkit.fluxcd.io/prune: disabled"} {
		if !strings.Contains(manifests, line) {
			t.Errorf("no %q in\n%s", line, manifests)
		}
	}
}

// checkDoctorRights looks at the rules of the account that `helm test` has, hooks that template leaves out.
func (h helm) checkDoctorRights(t *testing.T) {
	manifests, stderr := h.render(t, "--show-only=templates/tests/doctor.yaml")
	if stderr != "" {
		t.Fatal(stderr)
	}
	var creates []string
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		role := &rbacv1.Role{}
		if err := yaml.Unmarshal([]byte(document), role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				if verb != "get" && verb != "list" {
					creates = append(creates, strings.Join([]string{role.Kind, role.Namespace, verb, strings.Join(rule.Resources, ",")}, " "))
				}
			}
		}
	}
	want := []string{"ClusterRole  create subjectaccessreviews", "Role default create subnamespaces"}
	if diff := cmp.Diff(want, creates); diff != "" {
		t.Errorf("rights beside get and list (-want +got):\n%s", diff)
	}
}

// checkSurroundings sets what a cluster's monitoring, proxy, storage and security ask for.
func (h helm) checkSurroundings(t *testing.T) {
	objects, stderr := h.template(t, "controller.config.billing.driver=sqlite", "monitoring.monitors=true", "monitoring.alerts=true",
		"monitoring.labels.release=kube-prometheus-stack", "monitoring.namespace=monitoring", "monitoring.interval=15s",
		"controller.env[0].name=HTTPS_PROXY,controller.env[0].value=http://proxy:1", "controller.podSecurityContext.runAsUser=null",
		"exporter.env[0].name=SSL_CERT_FILE,exporter.env[0].value=/ca", "exporter.podSecurityContext.fsGroup=77",
		"exporter.securityContext.seLinuxOptions.level=s0", "exporter.storage.className=fast", "exporter.storage.size=5Gi")
	if stderr != "" {
		t.Fatal(stderr)
	}
	for _, name := range []string{"ServiceMonitor monitoring/warren-controller-manager", "PodMonitor monitoring/warren-billing-exporter",
		"PrometheusRule monitoring/warren-billing"} {
		checkParts(t, objects[name], "release:kube-prometheus-stack", "app.kubernetes.io/name:warren")
		if !strings.HasPrefix(name, "PrometheusRule") {
			checkParts(t, objects[name], "interval:15s", "matchNames:[warren-system]")
		}
	}
	operator := objects["Deployment warren-system/warren-controller-manager"]
	checkParts(t, operator, "name:HTTPS_PROXY value:http://proxy:1", "name:GOMEMLIMIT", "runAsGroup:65532", "runAsNonRoot:true",
		"allowPrivilegeEscalation:false")
	if user, found, _ := unstructured.NestedFieldNoCopy(operator, "spec", "template", "spec", "securityContext", "runAsUser"); found {
		t.Errorf("runAsUser null leaves user %v", user)
	}
	checkParts(t, objects["Deployment warren-system/warren-billing-exporter"], "name:SSL_CERT_FILE value:/ca", "fsGroup:77", "level:s0")
	checkParts(t, objects["PersistentVolumeClaim warren-system/warren-billing"], "storageClassName:fast", "storage:5Gi")
}

// checkEgress looks at the NetworkPolicies of the operator and of the hooks.
func (h helm) checkEgress(t *testing.T) {
	policies := 0
	for _, object := range h.renderAll(t) {
		if object.GetKind() == "NetworkPolicy" && strings.Contains(fmt.Sprint(object.Object["spec"]), "port:6443") {
			policies++
			checkParts(t, object.Object, "port:8443", "port:16443")
		}
	}
	if policies < 3 {
		t.Errorf("%d NetworkPolicies let out 6443, want those of the operator and of two hooks", policies)
	}
}
