package grants_test

import (
	"bufio"
	"bytes"
	"testing"

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
