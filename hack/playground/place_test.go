package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
		if got := slices.Contains(components(overlay()), "config/components/open-access"); got != open || checkOverlay() != nil {
			t.Errorf("OVERLAY=%q: every user may view and make tenants: %t, want %t; %v", name, got, open, checkOverlay())
		}
	}
	t.Setenv("OVERLAY", "hardened")
	if checkOverlay() == nil {
		t.Error("OVERLAY=hardened is no error")
	}
}

func TestConfigFollowsTheOverlay(t *testing.T) {
	p := place{root: t.TempDir()}
	if err := os.MkdirAll(filepath.Dir(p.configFile()), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(overlay string) string {
		t.Helper()
		t.Setenv("OVERLAY", overlay)
		if err := writeConfig(p); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(p.configFile())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, overlay := range []string{"standard", "open", "standard", "open"} {
		text := write(overlay)
		if limited := strings.Contains(text, "maxPerCreator: 5"); limited != (overlay == "open") {
			t.Errorf("OVERLAY=%s, after another one: a user may make five tenants: %t\n%s", overlay, limited, text)
		}
	}
	mine := write("open") + "concurrency: 7\n"
	if err := os.WriteFile(p.configFile(), []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := write("standard"); got != mine {
		t.Errorf("what the user has changed is replaced:\n%s", got)
	}
}

func TestHintNamesSamplesThatAreThere(t *testing.T) {
	for _, file := range sampleFiles() {
		if _, err := os.Stat(filepath.Join("..", "..", file)); err != nil {
			t.Error(err)
		}
	}
}
