package main

import (
	"fmt"
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// everything makes the chart render each of its objects; components that exclude each other are left out.
var everything = []string{
	"components.openAccess=true", "components.distribution=true", "components.distributionOverwrite=true", "components.budgets=true",
	"components.hierarchyAuthority=true", "components.certManager=true", "components.webhookClients=true",
	"controller.config.billing.driver=sqlite", "controller.priorityLevel=workload-high", "controller.additionalRBAC.clusterRoles={edit}",
	"controller.additionalRBAC.rules[0].apiGroups={acme.example}", "controller.additionalRBAC.rules[0].resources={widgets}",
	"controller.additionalRBAC.rules[0].verbs={list}", "controller.serviceAccount.annotations.cloud=identity",
	"monitoring.monitors=true", "monitoring.alerts=true", "monitoring.dashboards=true",
}

// renderAll returns every object of the chart with these values, also hooks, as Helm gives them to the API server.
func (h helm) renderAll(t *testing.T, values ...string) (objects []*unstructured.Unstructured) {
	t.Helper()
	manifests, stderr := h.render(t, values...)
	if stderr != "" {
		t.Fatal(stderr)
	}
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &u.Object); err != nil { // strict: no key is there twice
			t.Fatalf("%v in\n%s", err, document)
		}
		if u.Object != nil {
			objects = append(objects, u)
		}
	}
	return objects
}

func (h helm) checkCommon(t *testing.T) {
	objects := h.renderAll(t, append(everything, "commonLabels.team=platform", "commonAnnotations.contact=ops")...)
	ours := map[string]string{} // the keys that the chart sets, with the value that would set them
	for _, u := range objects {
		places := map[string]any{"its metadata": u.Object["metadata"]}
		if template, found, _ := unstructured.NestedMap(u.Object, "spec", "template", "metadata"); found {
			places["its pods"] = template
		}
		for place, metadata := range places {
			for field, want := range map[string]string{"labels": "team:platform", "annotations": "contact:ops"} {
				entries, _, _ := unstructured.NestedStringMap(metadata.(map[string]any), field)
				if !strings.Contains(fmt.Sprint(entries), want) {
					t.Errorf("%s %s: no %s in %s of %s: %v", u.GetKind(), u.GetName(), want, field, place, entries)
				}
				for key := range entries {
					ours[key] = "common" + strings.ToUpper(field[:1]) + field[1:] + "." + strings.ReplaceAll(key, ".", `\.`) + "=x"
				}
			}
		}
	}
	if len(objects) < 60 {
		t.Errorf("%d objects: everything leaves some out", len(objects))
	}
	for key, value := range ours {
		if key == "team" || key == "contact" || key == "cloud" {
			continue
		}
		if _, stderr := h.render(t, value); !strings.Contains(stderr, "has key "+key) {
			t.Errorf("--set %s: got %q, want a refusal of %s, which would be there twice", value, stderr, key)
		}
	}
}

// checkHookResources looks at the two pods that run for a hook.
func (h helm) checkHookResources(t *testing.T) {
	for _, test := range []struct {
		values []string
		want   []string
	}{
		{nil, []string{"requests:map[cpu:10m memory:64Mi]", "limits:map[cpu:1 memory:1Gi]"}},
		{[]string{"hookResources.limits.memory=2Gi", "hookResources.limits.cpu=2"}, []string{"limits:map[cpu:2 memory:2Gi]"}},
	} {
		var pods []string
		for _, u := range h.renderAll(t, test.values...) {
			if u.GetAnnotations()["helm.sh/hook"] != "" && (u.GetKind() == "Pod" || u.GetKind() == "Job") {
				pods = append(pods, u.GetName())
				checkParts(t, u.Object, test.want...)
			}
		}
		if fmt.Sprint(pods) != "[warren-release warren-doctor]" && fmt.Sprint(pods) != "[warren-doctor warren-release]" {
			t.Errorf("hooks with pods: %v", pods)
		}
	}
}

func (h helm) checkFlowSchema(t *testing.T) {
	objects, stderr := h.template(t)
	if stderr != "" || objects["FlowSchema /warren"] != nil {
		t.Fatalf("without priorityLevel: %v %s", objects["FlowSchema /warren"], stderr)
	}
	manifests, stderr := h.render(t, "controller.priorityLevel=workload-high", "--show-only=templates/flowschema.yaml")
	schema := &flowcontrolv1.FlowSchema{}
	if err := yaml.UnmarshalStrict([]byte(manifests), schema); err != nil || stderr != "" {
		t.Fatalf("%v %s", err, stderr)
	}
	if level := schema.Spec.PriorityLevelConfiguration.Name; level != "workload-high" {
		t.Errorf("the level is %q", level)
	}
	var names []string
	for _, subject := range schema.Spec.Rules[0].Subjects {
		names = append(names, subject.ServiceAccount.Namespace+"/"+subject.ServiceAccount.Name)
	}
	if want := "[warren-system/warren-controller-manager warren-system/warren-billing-exporter]"; fmt.Sprint(names) != want {
		t.Errorf("subjects %v, want %s", names, want)
	}
}
