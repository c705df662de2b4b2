package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/warren-tenancy/warren/test/devcluster"
)

// helm renders a chart as `helm template` does.
type helm struct{ program, chart string }

func newHelm(t *testing.T) helm {
	t.Helper()
	program, err := devcluster.Helm(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	chart := filepath.Join(t.TempDir(), "warren")
	if err := run(chart, "v1.2.3", ""); err != nil {
		t.Fatal(err)
	}
	return helm{program, chart}
}

// render returns the manifests of the chart with values, such as components.hardened=true, and flags.
func (h helm) render(t *testing.T, values ...string) (manifests, stderr string) {
	t.Helper()
	args := []string{"template", "warren", h.chart, "--namespace=warren-system", "--set=image.repository=warren,image.tag=dev"}
	for _, v := range values {
		if !strings.HasPrefix(v, "--") {
			v = "--set=" + v
		}
		args = append(args, v)
	}
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(t.Context(), h.program, args...)
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return "", problems.String()
	}
	return out.String(), ""
}

// template renders the chart, and returns its objects but hooks, without what Helm alone adds.
func (h helm) template(t *testing.T, values ...string) (objects map[string]map[string]any, stderr string) {
	t.Helper()
	manifests, stderr := h.render(t, values...)
	if stderr != "" {
		return nil, stderr
	}
	objects = map[string]map[string]any{}
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		annotations := u.GetAnnotations()
		if u.Object == nil || annotations["helm.sh/hook"] != "" {
			continue
		}
		delete(annotations, "helm.sh/resource-policy")
		labels := u.GetLabels()
		delete(labels, "app.kubernetes.io/version")
		u.SetAnnotations(annotations)
		u.SetLabels(labels)
		if u.GetKind() == "Deployment" {
			podAnnotations, _, _ := unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "annotations")
			if podAnnotations["checksum/config"] == "" {
				t.Errorf("Deployment %s has no checksum of its configuration", u.GetName())
			}
			unstructured.RemoveNestedField(u.Object, "spec", "template", "metadata", "annotations", "checksum/config")
		}
		addObject(t, objects, u)
	}
	return objects, ""
}

// kustomize renders base, an overlay or config/default, with components of config/components.
func kustomize(t *testing.T, base string, components ...string) map[string]map[string]any {
	t.Helper()
	for i := range components {
		components[i] = "config/components/" + components[i]
	}
	manifests, err := devcluster.RenderWith(base, components...)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]map[string]any{}
	for _, u := range manifests {
		if u.GetKind() == "Namespace" && u.GetName() == "warren-system" { // Helm creates it
			continue
		}
		text, err := u.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		plain := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(hashed.ReplaceAll(text, []byte("warren-config")), &plain.Object); err != nil {
			t.Fatal(err)
		}
		addObject(t, objects, plain)
	}
	return objects
}

// addObject adds an object under its kind, namespace and name. It drops empty fields, and parses the configuration file in a ConfigMap.
func addObject(t *testing.T, objects map[string]map[string]any, u *unstructured.Unstructured) {
	t.Helper()
	if u.GetKind() == "ConfigMap" && u.GetName() == "warren-config" {
		text, _, _ := unstructured.NestedString(u.Object, "data", "config.yaml")
		file := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &file); err != nil {
			t.Fatal(err)
		}
		u.Object["data"] = file
	}
	dropEmptyMaps(u.Object)
	key := u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
	if objects[key] != nil {
		t.Errorf("%s is there twice", key)
	}
	objects[key] = u.Object
}

func dropEmptyMaps(object map[string]any) {
	for key, value := range object {
		if inner, ok := value.(map[string]any); ok {
			if dropEmptyMaps(inner); len(inner) == 0 && key == "annotations" {
				delete(object, key)
			}
		}
	}
}

func TestChart(t *testing.T) {
	h := newHelm(t)
	t.Run("has the objects of kustomize", h.compareWithKustomize)
	t.Run("sets what values say", h.checkValues)
	t.Run("FLT-U20 Deployments have every value of where pods run and what they carry, beside their own labels; hostNetwork sets ports in "+
		"flags and NetworkPolicies, and maxSurge 0", h.checkPlacement)
	t.Run("FLT-U22 the PodDisruptionBudget lets one pod go at a time, also with one replica, so that a drain of nodes ends", h.checkDrain)
	t.Run("FLT-U23 Helm, Argo CD and Flux keep the claim of the billing ledger when it leaves the manifests", h.checkLedger)
	t.Run("SEC-X57 the account of helm test may create no tenant: beside reading, only SubjectAccessReviews, and SubNamespaces in default, "+
		"which is in no tree", h.checkDoctorRights)
	t.Run("FLT-U26 monitors and PrometheusRules have labels, namespace and interval of the values; pods have env and security contexts, "+
		"and the ledger's claim its class and size", h.checkSurroundings)
	t.Run("FLT-U40 every object and pod of the chart, also of hooks, has commonLabels and commonAnnotations; keys that the chart sets are "+
		"refused", h.checkCommon)
	t.Run("FLT-U41 pods of hooks have hookResources, by default requests and limits, so that a ResourceQuota lets them run",
		h.checkHookResources)
	t.Run("FLT-U42 with controller.priorityLevel, a FlowSchema puts the requests of operator and exporter into it; without it there is none",
		h.checkFlowSchema)
	t.Run("FLT-U43 NetworkPolicies, also of hooks, let out the ports of the API servers of minikube and MicroK8s", h.checkEgress)
	t.Run("refuses bad values", h.checkRefusals)
	t.Run("FLT-U21 the chart and the operator both refuse each of more than 60 bad values of controller.config", h.compareRefusals)
}

// comparison is of the chart with these values, and a base with these components, and beside them another folder.
type comparison struct {
	values     []string
	base       string
	components []string
	beside     string
}

func (h helm) compareWithKustomize(t *testing.T) {
	tests := map[string]comparison{
		"overlay standard": {base: "config/overlays/standard"},
		"overlay hardened": {values: []string{"components.hardened=true"}, base: "config/overlays/hardened"},
		"overlay open": {
			values: []string{"components.openAccess=true", "components.distribution=true", "components.budgets=true",
				"components.requests=true"}, base: "config/overlays/open",
		},
		"config/default": {values: []string{"components.strictPlacement=false"}, base: "config/default"},
		"all that go together": {
			values: []string{
				"components.openAccess=true", "components.distributionOverwrite=true", "components.distribution=true",
				"components.hierarchyAuthority=true", "components.budgets=true", "components.requests=true",
				"components.certManager=true", "components.webhookClients=true", "controller.config.billing.driver=sqlite",
			},
			base: "config/overlays/standard",
			components: []string{"open-access", "distribution-overwrite", "hierarchy-authority", "budgets", "requests", "cert-manager",
				"webhook-clients", "billing-sqlite"},
		},
		"hardened, cert-manager and hierarchy-authority": {
			values:     []string{"components.hardened=true", "components.certManager=true", "components.hierarchyAuthority=true"},
			base:       "config/overlays/standard",
			components: []string{"hardened", "cert-manager", "hierarchy-authority"},
		},
	}
	for component, value := range map[string]string{
		"open-access": "openAccess", "distribution": "distribution", "distribution-overwrite": "distributionOverwrite", "hardened": "hardened",
		"hierarchy-authority": "hierarchyAuthority", "budgets": "budgets", "requests": "requests", "cert-manager": "certManager",
		"webhook-clients": "webhookClients",
	} {
		test := tests["overlay standard"]
		test.values, test.components = []string{"components." + value + "=true"}, []string{component}
		tests[component] = test
	}
	for driver, complete := range map[string]string{
		"sqlite":   "",
		"postgres": ",controller.config.billing.clusterID=c,controller.config.billing.postgres.dsnFile=/dsn",
		"bigquery": ",controller.config.billing.clusterID=c,controller.config.billing.bigquery.project=acme," +
			"controller.config.billing.bigquery.dataset=d,controller.config.billing.bigquery.location=EU",
	} {
		test := tests["overlay standard"]
		test.values, test.components = []string{"controller.config.billing.driver=" + driver + complete}, []string{"billing-" + driver}
		tests["billing-"+driver] = test
	}
	tests["monitoring"] = comparison{
		values: []string{"monitoring.monitors=true", "monitoring.alerts=true", "monitoring.dashboards=true",
			"controller.config.billing.driver=sqlite"},
		base: "config/overlays/standard", components: []string{"billing-sqlite"}, beside: "config/prometheus",
	}
	for name, test := range tests {
		t.Run("SEC-X40 Helm chart and kustomize give the same objects for each overlay but loopback, each component, and components "+
			"together: "+name, func(t *testing.T) {
			got, stderr := h.template(t, test.values...)
			if stderr != "" {
				t.Fatal(stderr)
			}
			want := kustomize(t, test.base, test.components...)
			if test.beside != "" {
				maps.Copy(want, kustomize(t, test.beside))
			}
			delete(got["ConfigMap warren-system/warren-config"]["data"].(map[string]any), "billing") // it comes from the values alone
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("kustomize (-) and helm (+) differ:\n%s", diff)
			}
		})
	}
}

func TestEveryComponentIsASwitch(t *testing.T) {
	root, err := devcluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob(filepath.Join(root, "config", "components", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		used := false
		for _, l := range layers {
			used = used || strings.Contains(fmt.Sprint(l.to), filepath.Base(folder))
		}
		if !used {
			t.Errorf("component %s has no switch in the chart", filepath.Base(folder))
		}
	}
}

func (h helm) checkValues(t *testing.T) {
	objects, stderr := h.template(t, "controller.replicas=3", "controller.extraArgs={--zap-log-level=debug}", "image.tag=sha256:abc",
		"controller.resources.limits.memory=2Gi",
		"controller.goMemoryLimit=1800MiB", "controller.additionalRBAC.clusterRoles={edit}", "crds.enabled=false",
		"controller.config.concurrency=8",
		"controller.additionalRBAC.rules[0].apiGroups={acme.example}", "controller.additionalRBAC.rules[0].resources={widgets}",
		"controller.additionalRBAC.rules[0].verbs={list}",
		`controller.kindManifests=apiVersion: v1
kind: ConfigMap
metadata: {name: widgets}`)
	if stderr != "" {
		t.Fatal(stderr)
	}
	checkParts(t, objects["Deployment warren-system/warren-controller-manager"], "replicas:3", "--zap-log-level=debug",
		"image:warren@sha256:abc", "memory:2Gi", "value:1800MiB")
	for key, want := range map[string]bool{
		"ClusterRoleBinding /warren-additional-edit": true, "ClusterRole /warren-additional-resources": true, "ConfigMap /widgets": true,
		"CustomResourceDefinition /lnamespaces.tenancy.warren.dev": false, "ValidatingAdmissionPolicy /warren-copy": false,
		"ClusterRole /warren-kinds-configured": false,
	} {
		if got := objects[key] != nil; got != want {
			t.Errorf("%s: there %v, want %v", key, got, want)
		}
	}
}

// checkParts checks that the text of an object has each of these parts.
func checkParts(t *testing.T, object map[string]any, parts ...string) {
	t.Helper()
	text := fmt.Sprint(object)
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("the object lacks %s:\n%s", part, text)
		}
	}
}

// checkPlacement sets every value that says where pods run, and what they carry.
func (h helm) checkPlacement(t *testing.T) {
	file := filepath.Join(t.TempDir(), "values.yaml")
	const pod = `
  nodeSelector: {pool: system}
  tolerations: [{key: only, operator: Exists, effect: NoSchedule}]
  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: room, labelSelector: {}}]}}
  topologySpreadConstraints: [{maxSkew: 2, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}]
  priorityClassName: system-cluster-critical
  podAnnotations: {scrape: "true"}
  podLabels: {team: platform}
  serviceAccount: {annotations: {cloud: identity}}
  extraVolumes: [{name: ca, secret: {secretName: ca}}]
  extraVolumeMounts: [{name: ca, mountPath: /ca}]
  extraArgs: [--zap-log-level=debug]
  resources: {limits: {cpu: 1.5}}
  goMemoryLimit: 1GiB
`
	text := "image: {pullSecrets: [{name: registry}], pullPolicy: Always}\nexporter:" + pod + "controller:" + pod + `
  hostNetwork: true
  ports: {webhooks: 10250, metrics: 10251, health: 10252}
  terminationGracePeriodSeconds: 30
  config: {billing: {driver: sqlite}}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, stderr := h.template(t, "--values="+file)
	if stderr != "" {
		t.Fatal(stderr)
	}
	carried := []string{
		"nodeSelector:map[pool:system]", "effect:NoSchedule key:only", "topologyKey:room", "topologyKey:rack", "maxSkew:2",
		"priorityClassName:system-cluster-critical", "scrape:true", "team:platform", "secretName:ca", "mountPath:/ca", "--zap-log-level=debug",
		"cpu:1.5", "value:1GiB", "imagePullSecrets:[map[name:registry]]", "imagePullPolicy:Always", "app.kubernetes.io/name:warren",
	}
	operator := objects["Deployment warren-system/warren-controller-manager"]
	checkParts(t, operator, append(carried, "hostNetwork:true", "dnsPolicy:ClusterFirstWithHostNet", "maxSurge:0 maxUnavailable:1",
		"--webhook-port=10250", "--metrics-bind-address=:10251", "--health-probe-bind-address=:10252", "containerPort:10250",
		"terminationGracePeriodSeconds:30")...)
	checkParts(t, objects["Deployment warren-system/warren-billing-exporter"], carried...)
	checkParts(t, objects["NetworkPolicy warren-system/warren-allow-webhooks"], "port:10250")
	checkParts(t, objects["NetworkPolicy warren-system/warren-allow-metrics"], "port:10251")
	for _, name := range []string{"controller-manager", "billing-exporter"} {
		checkParts(t, objects["ServiceAccount warren-system/warren-"+name], "annotations:map[cloud:identity]")
	}
}

func (h helm) checkRefusals(t *testing.T) {
	for value, want := range map[string]string{
		"--namespace=tenancy":                                   `the release goes into namespace "tenancy": the policies name warren-system`,
		"controller.replicas=two":                               "at '/controller/replicas': got string, want integer",
		"controler.replicas=1":                                  "additional properties 'controler' not allowed",
		"components.harderned=true":                             "at '/components': additional properties 'harderned' not allowed",
		"controller.config.acess.userClusterRole=edit":          "at '/controller/config': additional properties 'acess' not allowed",
		"controller.config.concurrency=many":                    "at '/controller/config/concurrency': got string, want integer",
		"controller.podLabels.app\\.kubernetes\\.io/name=mine":  "controller.podLabels has key app.kubernetes.io/name, which selectors need",
		"exporter.podAnnotations.checksum/config=mine":          "exporter.podAnnotations has key checksum/config, which the chart sets",
		"monitoring.labels.app\\.kubernetes\\.io/name=mine":     "monitoring.labels has key app.kubernetes.io/name, which the chart sets",
		"monitoring.interval=often":                             "at '/monitoring/interval'",
		"exporter.storage.size=big":                             "at '/exporter/storage/size'",
		"controller.ports.metrics=8081":                         "controller.ports has one number twice",
		"image.repository=":                                     "image.repository is empty: name the image",
		"image.repository=registry.example/warren:v1":           "the tag or digest belongs in image.tag",
		"components.hardened=true,components.distribution=true": "components.hardened and components.distribution don't go together",
		"controller.config.propagation.kinds[0].kind=LimitRange": "controller.config names kind LimitRange, which the chart's policies don't " +
			"list",

		"commonLabels.app\\.kubernetes\\.io/name=mine": "commonLabels has key app.kubernetes.io/name, which the chart sets",
		"commonLabels.rbac\\.authorization\\.k8s\\.io/aggregate-to-view=x": "commonLabels has key rbac.authorization.k8s.io/" +
			"aggregate-to-view, which",
		"commonAnnotations.helm\\.sh/hook=test":  "commonAnnotations has key helm.sh/hook, which the chart sets",
		"commonLabels.team=9":                    "at '/commonLabels/team': got number, want string",
		"hookResources.limit.memory=1Gi":         "at '/hookResources': additional properties 'limit' not allowed",
		"controller.priorityLevel=Workload_High": "at '/controller/priorityLevel'",
	} {
		t.Run("FLT-U14 Helm refuses a wrong type, an unknown key, no image, components that don't go together, a kind that policies don't list, "+
			"another namespace; it says why: "+value, func(t *testing.T) {
			if _, stderr := h.template(t, value); !strings.Contains(stderr, want) {
				t.Errorf("got %q, want %q in it", stderr, want)
			}
		})
	}
}
