package manifests

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// generated has the policies whose lists of kinds depend on the configuration.
var generated = []string{"warren-copy", "warren-rail-names", "warren-operator-cage-objects"}

// The policies were proved in the form that docs/behaviour/security.md shows. Not a word of them may change unnoticed.
func TestPoliciesAreThoseOfTheSpecification(t *testing.T) {
	specified := specification(t)
	policies, bindings := shipped(t)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(specified)), slices.Sorted(maps.Keys(policies))); diff != "" {
		t.Fatalf("names (-specification +config/policy):\n%s", diff)
	}
	if len(specified) != 17 {
		t.Errorf("the specification has %d policies, want 17", len(specified))
	}
	for name, want := range specified {
		got := policies[name]
		want["failurePolicy"] = "Fail"
		if slices.Contains(generated, name) {
			withoutKinds(want)
			withoutKinds(got)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-specification +config/policy):\n%s", name, diff)
		}
	}
	for _, policy := range Shipped {
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

// The lists in the specification are those for the default kinds and a few more. For these kinds, the generated lists are the same.
func TestListsOfTheSpecification(t *testing.T) {
	specified := specification(t)
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
	for _, file := range For(c) {
		for _, document := range documents(t, file.Text) {
			name := document["metadata"].(map[string]any)["name"].(string)
			if document["kind"] != "ValidatingAdmissionPolicy" || strings.HasPrefix(name, HintPrefix) { // hints refuse nothing
				continue
			}
			if diff := cmp.Diff(sortedRules(specified[name]), sortedRules(document["spec"])); diff != "" {
				t.Errorf("%s (-specification +generated):\n%s", name, diff)
			}
		}
	}
}

// specification reads the YAML of section 2.3, which uses anchors, and returns the specs by name.
func specification(t *testing.T) map[string]map[string]any {
	t.Helper()
	page := read(t, "docs/behaviour/security.md")
	block := regexp.MustCompile("(?s)### 2.3 Policies.*?```yaml\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/behaviour/security.md has no YAML in section 2.3")
	}
	all := map[string]any{}
	if err := yaml.Unmarshal(block[1], &all); err != nil {
		t.Fatal(err)
	}
	policies := map[string]map[string]any{}
	for name, spec := range all {
		if strings.HasPrefix(name, "warren-") {
			policies[name] = spec.(map[string]any)
		}
	}
	return policies
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

// withoutKinds removes the rules for configured kinds from a spec. The rule for Warren's own group stays.
func withoutKinds(spec map[string]any) {
	constraints := spec["matchConstraints"].(map[string]any)
	constraints["resourceRules"] = slices.DeleteFunc(slices.Clone(constraints["resourceRules"].([]any)), func(rule any) bool {
		return rule.(map[string]any)["apiGroups"].([]any)[0] != "tenancy.warren.dev"
	})
}

// sortedRules returns a spec's rules by API group, with their resources sorted.
func sortedRules(spec any) map[any]any {
	constraints, _ := spec.(map[string]any)["matchConstraints"].(map[string]any)
	rules := map[any]any{}
	for _, rule := range constraints["resourceRules"].([]any) {
		rule := maps.Clone(rule.(map[string]any))
		resources := slices.Clone(rule["resources"].([]any))
		slices.SortFunc(resources, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		rule["resources"] = resources
		rules[rule["apiGroups"].([]any)[0]] = rule
	}
	return rules
}
