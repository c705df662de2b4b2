package copies_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

func TestMissingRails(t *testing.T) {
	none := func(s *copies.Source) { s.Mode = v1alpha1.ModeNone }
	tests := map[string]struct {
		facts []fact
		want  []copies.Slot
	}{
		"nothing is wanted":                {nil, nil},
		"a copy is to be made":             {[]fact{source("acme", "update")}, []copies.Slot{at("a")}},
		"in mode create, too":              {[]fact{source("acme", "create")}, []copies.Slot{at("a")}},
		"its source is yet to be read":     {[]fact{source("acme", "update", unread)}, []copies.Slot{at("a")}},
		"the copy stands":                  {[]fact{source("acme", "update"), copied("a", "acme", "update")}, nil},
		"the copy stands, and has drifted": {[]fact{source("acme", "update"), copied("a", "acme", "update", drifted)}, nil},
		"an unread source of one that is":  {[]fact{source("acme", "update", unread), copied("a", "acme", "update")}, nil},
		"somebody else's object":           {[]fact{source("acme", "update"), copied("a", "acme", "update", forged)}, nil},
		"a source that goes":               {[]fact{source("acme", "update", unread, going)}, nil},
		"a source that opts out":           {[]fact{source("acme", "update", unread, none)}, nil},
		"a kind that isn't known yet":      {[]fact{kind(copies.OptIn, false), source("acme", "update", unread)}, nil},
		"a source elsewhere":               {[]fact{source("zeta", "update")}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, world(acme(), tt.facts...).MissingRails("a")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestHoldsRightsFrom(t *testing.T) {
	binding := copies.Slot{Kind: schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}, Namespace: "a",
		Name: "warren:users"}
	tests := map[string]struct {
		fact fact
		want bool
	}{
		"a binding from there":           {copiedTo(binding, "acme", "update"), true},
		"a binding from elsewhere":       {copiedTo(binding, "tmpl", "update"), false},
		"a binding that somebody forged": {copiedTo(binding, "acme", "update", forged), false},
		"another copy from there":        {copied("a", "acme", "update"), false},
		"nothing":                        {func(*copies.World) {}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := world(acme(), tt.fact).Copies.GiveRightsFrom("a", "acme"); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	if !copies.GivesRights(binding) || copies.GivesRights(at("a")) {
		t.Error("RoleBindings, and they alone, give rights")
	}
}
