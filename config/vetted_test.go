package config_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/warren-tenancy/warren/internal/rolevetting"
)

// What Warren itself brings into admin is in every vetted list, or every cluster of that version has findings.
func TestOwnRightsAreVetted(t *testing.T) {
	files, err := filepath.Glob("rbac/aggregate_to_*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("ClusterRoles that are aggregated: %q, %v", files, err)
	}
	role := &rolevetting.Role{Name: "admin"}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var part rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict(text, &part); err != nil {
			t.Fatal(err)
		}
		role.Rules = append(role.Rules, part.Rules...)
		role.Contributors = append(role.Contributors, rolevetting.Contributor{Name: part.Name, Rules: part.Rules})
	}
	lists, err := fs.Glob(rolevetting.Shipped.Files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lists {
		list, _, err := rolevetting.Shipped.For(version.MustParseMajorMinor(strings.TrimSuffix(name, ".yaml")))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range rolevetting.Compare(role, list) {
			t.Errorf("docs/vetted/%s: %s: %s: run make vet-admin for that version", name, f.Severity, f.Message)
		}
	}
}
