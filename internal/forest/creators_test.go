package forest_test

import (
	"testing"
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

func madeBy(name, creator string, second int) *forest.Tenant {
	return &forest.Tenant{Name: name, UID: "uid-" + name, Creator: creator, Created: time.Unix(int64(second), 0)}
}

func TestCountsFor(t *testing.T) {
	s := grown(namespace("a", root), namespace("b", below("a")), namespace("x", below("gone"), placed("a/gone/x")),
		namespace("o", root), namespace("ci")).
		WithTenant(madeBy("a", "alice", 1)).WithTenant(madeBy("o", "", 1)).
		WithTenant(madeBy("m", "system:serviceaccount:n:y", 1)).WithTenant(madeBy("n", "system:serviceaccount:m:y", 1)).
		WithTenant(madeBy("m2", "warren:sudo:a", 1))
	for user, want := range map[string]string{
		"bob":                         "bob",
		"system:serviceaccount:ci:y":  "namespace ci",
		"system:serviceaccount:a:y":   "alice",
		"system:serviceaccount:b:y":   "alice",
		"system:serviceaccount:x:y":   "alice",
		"system:serviceaccount:o:y":   "tenant o",
		"system:serviceaccount:off:y": "namespace off",
		"warren:sudo:a":               "alice",
		"warren:sudo:o":               "tenant o",
		"warren:sudo:gone":            "tenant gone",
		"warren:sudo:m2":              "alice",
	} {
		if got := forest.CountsFor(s, user); got != want {
			t.Errorf("CountsFor(%q) = %q, want %q", user, got, want)
		}
	}
	if forest.CountsFor(s, "system:serviceaccount:m:y") == "" {
		t.Error("tenants that made each other count for nobody")
	}
}

func TestMadeBefore(t *testing.T) {
	owned := annotation(v1alpha1.AnnotationLNamespaceUID, "uid-young")
	s := grown(namespace("young", root, owned), namespace("ci")).
		WithTenant(madeBy("young", "alice", 9)).WithTenant(madeBy("b", "alice", 2)).WithTenant(madeBy("c", "alice", 2)).
		WithTenant(madeBy("d", "alice", 3)).WithTenant(madeBy("bobs", "bob", 1)).WithTenant(madeBy("nobodys", "", 1))
	for name, want := range map[string]int{"b": 1, "c": 2, "d": 3, "young": 3, "bobs": 0} {
		if got := forest.CountMadeBefore(s, s.Tenant(name)); got != want {
			t.Errorf("MadeBefore(%s) = %d, want %d", name, got, want)
		}
	}
}
