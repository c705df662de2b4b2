package forest_test

import (
	"testing"

	"github.com/warren-tenancy/warren/internal/forest"
)

func TestBelongsTo(t *testing.T) {
	cases := map[string]struct {
		reason string
		grown  []*forest.Namespace
		of     string
		want   bool
	}{
		"Missing": {reason: "a namespace that doesn't exist is in no tree", of: "x"},
		"Root":    {reason: "the root is in its tree, even before it exists", of: "a", want: true},
		"Plain":   {reason: "a namespace without keys is in no tree", grown: some(namespace("a", root), namespace("x")), of: "x"},
		"Sound": {reason: "labels lead to the root", grown: some(namespace("a", root), namespace("b", below("a")), namespace("x", below("b"))),
			of: "x", want: true},
		"Stranger": {reason: "labels lead to another root", grown: some(namespace("a", root), namespace("o", root), namespace("x", below("o"))),
			of: "x"},
		"ParentGone": {reason: "the last sound path began at the root",
			grown: some(namespace("a", root), namespace("x", below("mid"), placed("a/mid/x"))), of: "x", want: true},
		"BelowParentGone": {reason: "so does what hangs below a namespace that is halted",
			grown: some(namespace("a", root), namespace("h", below("mid"), placed("a/mid/h")), namespace("x", below("h"))), of: "x", want: true},
		"InCycle": {reason: "a cycle takes nobody's tokens away",
			grown: some(namespace("a", root), namespace("x", below("y"), placed("a/x")), namespace("y", below("x"), placed("a/x/y"))),
			of:    "y", want: true},
		"CycleOfOthers": {reason: "a cycle elsewhere ends the climb",
			grown: some(namespace("a", root), namespace("x", below("y")), namespace("y", below("x"))), of: "x"},
		"Protected": {reason: "nor does protection",
			grown: some(namespace("a", root), namespace("x", below("a"), protected)), of: "x", want: true},
		"ProtectedRoot": {reason: "nor that of the root",
			grown: some(namespace("a", root, protected), namespace("x", below("a"))), of: "x", want: true},
		"Left": {reason: "a namespace that left the tree keeps no place in it, whatever is still written there",
			grown: some(namespace("a", root), namespace("x", placed("a/x"))), of: "x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := grown(tc.grown...).BelongsTo(tc.of, "a"); got != tc.want {
				t.Errorf("%s\nBelongsTo(%q, \"a\") = %v, want %v", tc.reason, tc.of, got, tc.want)
			}
		})
	}
}
