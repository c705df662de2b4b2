package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
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

func TestComponents(t *testing.T) {
	for name, open := range map[string]bool{"": false, "standard": false, "open": true} {
		t.Setenv("OVERLAY", name)
		if got := slices.Contains(components(), "config/components/open-access"); got != open || checkOverlay() != nil {
			t.Errorf("OVERLAY=%q: every user may view and make tenants: %t, want %t; %v", name, got, open, checkOverlay())
		}
	}
	t.Setenv("OVERLAY", "hardened")
	if checkOverlay() == nil {
		t.Error("OVERLAY=hardened is no error")
	}
}

func TestHintNamesSamplesThatAreThere(t *testing.T) {
	for _, file := range sampleFiles() {
		if _, err := os.Stat(filepath.Join("..", "..", file)); err != nil {
			t.Error(err)
		}
	}
}
