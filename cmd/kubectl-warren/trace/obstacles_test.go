package trace_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/trace"
)

func TestObstaclesIn(t *testing.T) {
	const why = ": an object of that name exists: rename or delete it"
	for name, c := range map[string]struct {
		reason, message string
		want            []trace.Obstacle
	}{
		"one": {"Conflict", `Secret "db" from "acme"` + why, []trace.Obstacle{{Kind: "Secret", Name: "db", From: "acme"}}},
		"some of many, one with a strange name": {"Conflict",
			`Role "a\"; b" from "acme"` + why + `; Secret "db" from "org"` + why + "; and 20 more",
			[]trace.Obstacle{{Kind: "Role", Name: `a"; b`, From: "acme"}, {Kind: "Secret", Name: "db", From: "org"}}},
		"another reason": {"Rejected", `Secret "db" from "acme": no room`, []trace.Obstacle{}},
		"no items":       {"Conflict", "something else", []trace.Obstacle{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, trace.ObstaclesIn(told("web", c.reason, c.message).Conditions["web"])); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if got := trace.ObstaclesIn(nil); len(got) > 0 {
		t.Errorf("without conditions: %v", got)
	}
}
