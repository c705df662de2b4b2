package fairqueue

import (
	"strings"
	"testing"
)

// placed returns the attributes of a key from its text: the first letter is the tenant, the second is the class, and the third is the lane.
// Lane x has a Burst of 3.
func placed(word string) Attributes {
	a := Attributes{Tenant: word[:1], Class: int(word[1] - '0'), Lane: word[2:3]}
	if a.Lane == "x" {
		a.Burst = 3
	}
	return a
}

func TestOrder(t *testing.T) {
	for name, test := range map[string]struct{ pushed, popped string }{
		"PROP-Q5 within a tree, work is in the order of 2.7, and sources take turns": {
			pushed: "A2a1 A2a2 A2a3 A2b1 A1c1 A2b2 A0d1 A1c2 A1e1",
			popped: "A0d1 A1c1 A1e1 A1c2 A2a1 A2b1 A2a2 A2b2 A2a3",
		},
		"PROP-Q5 many sources of one tenant delay another tenant by one key each": {
			pushed: "A2a1 A2b1 A2c1 A2d1 B2a1 B2a2 A2e1",
			popped: "A2a1 B2a1 A2b1 B2a2 A2c1 A2d1 A2e1",
		},
		"PROP-Q5 tenants take turns, whatever the class of their work": {
			pushed: "A0a1 A0a2 A0a3 A0a4 B0b1 B2b1",
			popped: "A0a1 B0b1 A0a2 B2b1 A0a3 A0a4",
		},
		"PROP-Q6 copies of a large source follow one another for a while, without delay for other tenants": {
			pushed: "A2x1 A2x2 A2x3 A2x4 A2a1 A2a2 B2b1 B2b2",
			popped: "A2x1 B2b1 A2x2 B2b2 A2x3 A2a1 A2x4 A2a2",
		},
		"PROP-Q9 a waiting key that is queued again keeps its place": {
			pushed: "A2a1 A2a2 A2b1 A2a1",
			popped: "A2a1 A2b1 A2a2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var o Order[string]
			for word := range strings.FieldsSeq(test.pushed) {
				o.Push(word, placed(word))
			}
			if got := popAll(&o); got != test.popped {
				t.Errorf("the order is %s, want %s", got, test.popped)
			}
			if len(o.places)+len(o.tenants.members)+len(o.tenants.turns) != 0 {
				t.Errorf("the order still holds %v", o)
			}
		})
	}
}

// popAll empties a queue, and returns its keys in their order.
func popAll(o interface {
	Len() int
	Pop() string
}) string {
	var order []string
	for o.Len() > 0 {
		order = append(order, o.Pop())
	}
	return strings.Join(order, " ")
}

// A waiting key whose attributes have changed leaves its place in the order, even if its lane or its tenant has no other key.
func TestChangedKeys(t *testing.T) {
	for name, test := range map[string]struct{ moved, to, popped string }{
		"PROP-Q9 a waiting key moves to its new class":                    {"A2a2", "A0a", "A2a2 B2b1 C2c1 A2a1 A2a3"},
		"PROP-Q9 a waiting key moves to its new source":                   {"A2a1", "A2z", "A2a2 B2b1 C2c1 A2a1 A2a3"},
		"PROP-Q9 a waiting key moves to its new tenant":                   {"B2b1", "C2c", "A2a1 C2c1 A2a2 B2b1 A2a3"},
		"PROP-Q9 a waiting key moves to a new tenant without other keys":  {"A2a2", "D2a", "A2a1 B2b1 C2c1 A2a2 A2a3"},
		"PROP-Q9 a waiting key with unchanged attributes keeps its place": {"A2a2", "A2a", "A2a1 B2b1 C2c1 A2a2 A2a3"},
	} {
		t.Run(name, func(t *testing.T) {
			attributes := map[string]Attributes{}
			q := ForWorkqueue(func(word string) Attributes { return attributes[word] })
			for word := range strings.FieldsSeq("A2a1 A2a2 A2a3 B2b1 C2c1") {
				attributes[word] = placed(word)
				q.Push(word)
			}
			attributes[test.moved] = placed(test.to)
			q.Touch(test.moved)
			if got := popAll(q); got != test.popped {
				t.Errorf("the order is %s, want %s", got, test.popped)
			}
		})
	}
}
