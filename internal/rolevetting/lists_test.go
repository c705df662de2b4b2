package rolevetting_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/warren-tenancy/warren/internal/rolevetting"
)

// lists returns a list without rights for each of these minor versions.
func lists(t *testing.T, minors ...string) rolevetting.Lists {
	t.Helper()
	files := fstest.MapFS{}
	for _, minor := range minors {
		data, err := (&rolevetting.List{Kubernetes: minor, Role: "admin"}).Bytes()
		if err != nil {
			t.Fatal(err)
		}
		files[minor+".yaml"] = &fstest.MapFile{Data: data}
	}
	return rolevetting.Lists{Files: files}
}

func TestListAsAFile(t *testing.T) {
	list := &rolevetting.List{
		Kubernetes: "v1.36.3", Role: "admin", Reviewed: rolevetting.Review{Date: "2026-11-20", Note: "as shipped: no danger"},
		Contributors: words("edit", "view"),
		Rules: []rolevetting.Right{
			{Resource: "pods/exec", Verb: "create"},
			{APIGroup: "apps", Resource: "deployments", Verb: "get", ResourceNames: words("a", "*")},
		},
		APIResources: words("deployments.apps", "pods"),
	}
	const text = `kubernetes: v1.36.3
role: admin
reviewed:
  date: "2026-11-20"
  note: 'as shipped: no danger'
contributors:
- edit
- view
rules:
- {apiGroup: "", resource: pods/exec, verb: create}
- {apiGroup: apps, resource: deployments, verb: get, resourceNames: [a, '*']}
apiResources:
- deployments.apps
- pods
`
	data, err := list.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text, string(data)); diff != "" {
		t.Errorf("written: -want +got:\n%s", diff)
	}
	read, err := rolevetting.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(list, read); diff != "" {
		t.Errorf("read: -want +got:\n%s", diff)
	}
	if _, err := rolevetting.Parse([]byte("roles: []\n")); err == nil || !strings.Contains(err.Error(), "field roles not found") {
		t.Errorf("a key that is unknown: %v", err)
	}
}

func TestAgrees(t *testing.T) {
	list := rolevetting.List{Kubernetes: "v1.36.3", Role: "admin", Rules: []rolevetting.Right{{Resource: "pods", Verb: "get"}}}
	later := list
	later.Kubernetes, later.Reviewed = "v1.36.4", rolevetting.Review{Date: "2027-01-01"}
	if !list.Agrees(&later) {
		t.Error("a patch release and another review make a difference")
	}
	later.Rules = []rolevetting.Right{{Resource: "pods", Verb: "list"}}
	if list.Agrees(&later) {
		t.Error("another right makes no difference")
	}
}

func TestNearestList(t *testing.T) {
	cases := map[string]struct {
		have  []string
		minor uint
		want  string
		exact bool
	}{
		"exact":                {words("1.34", "1.35", "1.36"), 35, "1.35", true},
		"the nearest lower":    {words("1.34", "1.35", "1.36"), 40, "1.36", false},
		"between":              {words("1.34", "1.36"), 35, "1.34", false},
		"below all":            {words("1.36", "1.35"), 30, "1.35", false},
		"numbers, not letters": {words("1.9", "1.10"), 11, "1.10", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			list, exact, err := lists(t, c.have...).For(version.MajorMinor(1, c.minor))
			if err != nil || list.Kubernetes != c.want || exact != c.exact {
				t.Errorf("got %+v, %t, %v", list, exact, err)
			}
		})
	}
	if _, _, err := lists(t).For(version.MajorMinor(1, 36)); err == nil {
		t.Error("no lists at all are no error")
	}
	odd := rolevetting.Lists{Files: fstest.MapFS{"new.yaml": &fstest.MapFile{}}}
	if _, _, err := odd.For(version.MajorMinor(1, 36)); err == nil || !strings.Contains(err.Error(), "new.yaml") {
		t.Errorf("a file of an odd name: %v", err)
	}
}

func TestMinor(t *testing.T) {
	cases := map[string]struct {
		info apiversion.Info
		want string // empty: an error
	}{
		"plain":      {apiversion.Info{Major: "1", Minor: "36"}, "1.36"},
		"of a cloud": {apiversion.Info{Major: "1", Minor: "35+"}, "1.35"},
		"emulated":   {apiversion.Info{Major: "1", Minor: "36", EmulationMajor: "1", EmulationMinor: "34"}, "1.36"},
		"odd":        {apiversion.Info{Major: "1", Minor: "x"}, ""},
		"none":       {apiversion.Info{}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			minor, err := rolevetting.Minor(&c.info)
			if (err == nil) != (c.want != "") || err == nil && minor.String() != c.want {
				t.Errorf("got %s, %v", minor, err)
			}
		})
	}
}

// Each list that Warren ships is complete and sorted. It is for the version in its file name, and has no dangerous right.
func TestShippedLists(t *testing.T) {
	names, err := fs.Glob(rolevetting.Shipped.Files, "*")
	if err != nil || len(names) == 0 {
		t.Fatalf("lists: %v, %v", names, err)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			minor := strings.TrimSuffix(name, ".yaml")
			list, exact, err := rolevetting.Shipped.For(version.MustParseMajorMinor(minor))
			if err != nil || !exact {
				t.Fatalf("exact %t, %v", exact, err)
			}
			if !strings.HasPrefix(list.Kubernetes, "v"+minor+".") || list.Role != "admin" || list.Reviewed.Date == "" || list.Reviewed.Note == "" {
				t.Errorf("of Kubernetes %s, role %s, reviewed %+v", list.Kubernetes, list.Role, list.Reviewed)
			}
			if !slices.Contains(list.Contributors, "system:aggregate-to-admin") || !slices.IsSorted(list.APIResources) || len(list.Rules) < 100 {
				t.Errorf("contributors %q, %d rules", list.Contributors, len(list.Rules))
			}
			var rules []rbacv1.PolicyRule
			for _, r := range list.Rules {
				rules = append(rules, rule(r.APIGroup, words(r.Resource), words(r.Verb), r.ResourceNames...))
				if r.Dangerous() {
					t.Errorf("dangerous: %s", r)
				}
			}
			if diff := cmp.Diff(rolevetting.Rights(rules), list.Rules); diff != "" {
				t.Errorf("not in normal form: -want +got:\n%s", diff)
			}
		})
	}
}
