package grants_test

import (
	"bufio"
	"bytes"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

func newBuffered(data []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(data)) }

func TestSelfName(t *testing.T) {
	for user, want := range map[string]string{
		"bob":               "warren:self:bob",
		"https://acc/1#2%3": "warren:self:https:~1~1acc~11#2~23",
		"https:~1~1acc":     "warren:self:https:~01~01acc",
		"a/b":               "warren:self:a~1b",
		"a~1b":              "warren:self:a~01b",
		"~":                 "warren:self:~0",
		"Zoë Müller":        "warren:self:Zoë Müller",
		"..":                "warren:self:..",
	} {
		t.Run("ACC-R10 "+user, func(t *testing.T) {
			if got := grants.SelfName(user); got != want {
				t.Errorf("want %q, got %q", want, got)
			}
			if got, ok := grants.SelfUser(want); !ok || got != user {
				t.Errorf("want %q back, got %q, %v", user, got, ok)
			}
		})
	}
}

func TestSelfUserRefusesOtherNames(t *testing.T) {
	for _, name := range []string{"warren:self:", "warren:sudo:bob", "warren:self:a~", "warren:self:a~3", "warren:self:a/b", "bob"} {
		if user, ok := grants.SelfUser(name); ok {
			t.Errorf("%q: want no user, got %q", name, user)
		}
	}
}

func FuzzSelfName(f *testing.F) {
	for _, pair := range [][2]string{{"a/b", "a~1b"}, {"~", "~0"}, {"%", "~2"}, {"~~1", "~/"}, {"bob", "Bob"}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, one, other string) {
		if one == "" || other == "" {
			return
		}
		name := grants.SelfName(one)
		if user, ok := grants.SelfUser(name); !ok || user != one {
			t.Errorf("%q became %q and then %q, %v", one, name, user, ok)
		}
		if bytes.ContainsAny([]byte(name), "/%") {
			t.Errorf("%q became %q, which RBAC refuses", one, name)
		}
		if one != other && name == grants.SelfName(other) {
			t.Errorf("%q and %q share the name %q", one, other, name)
		}
	})
}

func TestLacksLabels(t *testing.T) {
	object := func(name, access, tenant string) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelAccess: access, v1alpha1.LabelTenant: tenant}}
	}
	for _, tc := range []struct {
		object *metav1.ObjectMeta
		want   bool
	}{
		{object("warren:sole:payments:bob", "sole", "payments"), false},
		{object("warren:sole:payments:a:b", "sole", "payments"), false},
		{object("warren:sole:payments:bob", "sole", "shop"), true},
		{object("warren:sole:payments:bob", "edit", "payments"), true},
		{object("warren:sole:payments:bob", "", ""), true},
		{object("warren:sudo:payments", "sudo", "payments"), false},
		{object("warren:edit:payments", "", "payments"), true},
		{object("warren:self:bob", "self", ""), false},
		{object("warren:self:bob", "", ""), true},
		{object("warren:impersonate-on", "", ""), false},
		{object("warren:other:x", "", ""), false},
		{object("view", "", ""), false},
	} {
		t.Run("ACC-E12 "+tc.object.Name, func(t *testing.T) {
			if got := grants.LacksLabels(tc.object); got != tc.want {
				t.Errorf("%v: %v", tc.object.Labels, got)
			}
		})
	}
}
