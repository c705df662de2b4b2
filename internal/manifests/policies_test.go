package manifests

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// Each policy of config/policy is in Shipped, refuses when it can't decide, and is bound as Shipped says.
func TestPoliciesAreShipped(t *testing.T) {
	policies, bindings := shipped(t)
	for _, policy := range Shipped {
		if policies[Prefix+policy.Name]["failurePolicy"] != "Fail" {
			t.Errorf("policy %s is missing, or has another failurePolicy than Fail", policy.Name)
		}
		for _, b := range policy.Bindings {
			want := map[string]any{"policyName": Prefix + policy.Name, "validationActions": []any{"Deny"}}
			if b.Mark != "" {
				want["matchResources"] = map[string]any{"objectSelector": map[string]any{
					"matchExpressions": []any{map[string]any{"key": b.Mark, "operator": "Exists"}}}}
			}
			if diff := cmp.Diff(want, bindings[Prefix+b.Name]); diff != "" {
				t.Errorf("binding %s (-want +got):\n%s", b.Name, diff)
			}
			delete(bindings, Prefix+b.Name)
		}
		delete(policies, Prefix+policy.Name)
	}
	if len(policies) > 0 || len(bindings) > 0 {
		t.Errorf("not in Shipped: policies %v, bindings %v", slices.Collect(maps.Keys(policies)), slices.Collect(maps.Keys(bindings)))
	}
}

// The policies that list kinds have those of the configuration, with the status of those that have one.
func TestPoliciesListTheConfiguredKinds(t *testing.T) {
	c := configured(t, `
propagation:
  kinds:
  - {kind: Secret}
  - {kind: ConfigMap}
  - {kind: ServiceAccount}
  - {kind: LimitRange}
  - {kind: ResourceQuota}
  - {kind: Service}
  - {group: networking.k8s.io, kind: NetworkPolicy}
`)
	names := func(kinds string) map[string]string {
		return map[string]string{"": kinds, "rbac.authorization.k8s.io": "rolebindings roles", "networking.k8s.io": "networkpolicies"}
	}
	const core = "configmaps limitranges resourcequotas resourcequotas/status secrets serviceaccounts services services/status"
	own := names(core)
	own["tenancy.warren.dev"], own["batch"] = "*/*", "jobs"
	want := map[string]map[string]string{
		"warren-copy":                  names(core),
		"warren-rail-names":            names("configmaps limitranges resourcequotas secrets serviceaccounts services"),
		"warren-operator-cage-objects": own,
	}
	got := map[string]map[string]string{}
	for _, file := range For(c) {
		for _, document := range documents(t, file.Text) {
			name := document["metadata"].(map[string]any)["name"].(string)
			if document["kind"] == "ValidatingAdmissionPolicy" && !strings.HasPrefix(name, HintPrefix) { // hints refuse nothing
				got[name] = listedKinds(document["spec"].(map[string]any))
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// listedKinds returns the resources of a policy's rules by their group, sorted.
func listedKinds(spec map[string]any) map[string]string {
	byGroup := map[string]string{}
	for _, rule := range spec["matchConstraints"].(map[string]any)["resourceRules"].([]any) {
		rule := rule.(map[string]any)
		var resources []string
		for _, resource := range rule["resources"].([]any) {
			resources = append(resources, resource.(string))
		}
		slices.Sort(resources)
		byGroup[rule["apiGroups"].([]any)[0].(string)] = strings.Join(resources, " ")
	}
	return byGroup
}

// shipped reads config/policy: the specs of policies and of bindings, by name.
func shipped(t *testing.T) (policies, bindings map[string]map[string]any) {
	t.Helper()
	policies, bindings = map[string]map[string]any{}, map[string]map[string]any{}
	paths, err := filepath.Glob("../../config/policy/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("config/policy: %v, %v", paths, err)
	}
	for _, path := range paths {
		for _, document := range documents(t, read(t, "config/policy/"+filepath.Base(path))) {
			switch name, _ := document["metadata"].(map[string]any)["name"].(string); document["kind"] {
			case "ValidatingAdmissionPolicy":
				policies[name] = document["spec"].(map[string]any)
			case "ValidatingAdmissionPolicyBinding":
				bindings[name] = document["spec"].(map[string]any)
			}
		}
	}
	return policies, bindings
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// documents decodes a YAML file, and leaves out documents without a name.
func documents(t *testing.T, text []byte) []map[string]any {
	t.Helper()
	var all []map[string]any
	for stream := yaml.NewDecoder(bytes.NewReader(text)); ; {
		document := map[string]any{}
		err := stream.Decode(&document)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, named := document["metadata"].(map[string]any); named {
			all = append(all, document)
		}
	}
}
