package main

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseUsers(t *testing.T) {
	usual := func(more map[string][]string) map[string][]string {
		users := map[string][]string{"alice": nil, "bob": nil, "carol": nil, "dave": nil, "mia": nil}
		maps.Copy(users, more)
		return users
	}
	for text, want := range map[string]map[string][]string{
		"":                    usual(nil),
		"eve otto:pay-oncall": usual(map[string][]string{"eve": {}, "otto": {"pay-oncall"}}),
		" bob:a:b ":           usual(map[string][]string{"bob": {"a", "b"}}),
	} {
		got, err := parseUsers(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("USERS=%q: %v %s", text, err, diff)
		}
	}
	for _, text := range []string{":g", "eve:", "eve::g", "admin", "a/b", "config", "Eve!", "eve,otto", "system:admin", "x:system:masters"} {
		if users, err := parseUsers(text); err == nil {
			t.Errorf("USERS=%q: got %v, want an error", text, users)
		}
	}
}

func TestHintNamesSamplesThatAreThere(t *testing.T) {
	for _, file := range sampleFiles() {
		if _, err := os.Stat(filepath.Join("..", "..", file)); err != nil {
			t.Error(err)
		}
	}
}
