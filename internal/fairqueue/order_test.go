package fairqueue

import (
	"strings"
	"testing"
)

func TestLanes(t *testing.T) {
	for name, test := range map[string]struct{ pushed, popped string }{
		"PROP-Q5 classes of a tenant in order, lanes of a class in turns": {
			pushed: "A2a1 A2a2 A2a3 A2b1 A1c1 A2b2 A0d1 A1c2 A1e1",
			popped: "A0d1 A1c1 A1e1 A1c2 A2a1 A2b1 A2a2 A2b2 A2a3",
		},
		"PROP-Q5 many lanes of one tenant delay another by one key each": {
			pushed: "A2a1 A2b1 A2c1 A2d1 B2a1 B2a2 A2e1",
			popped: "A2a1 B2a1 A2b1 B2a2 A2c1 A2d1 A2e1",
		},
		"PROP-Q5 what is urgent of one tenant doesn't hold up what is not of another": {
			pushed: "A0a1 A0a2 A0a3 A0a4 B0b1 B2b1",
			popped: "A0a1 B0b1 A0a2 B2b1 A0a3 A0a4",
		},
		"PROP-Q6 a lane with long turns is followed for a while, by its tenant alone": {
			pushed: "A2x1 A2x2 A2x3 A2x4 A2a1 A2a2 B2b1 B2b2",
			popped: "A2x1 B2b1 A2x2 B2b2 A2x3 A2a1 A2x4 A2a2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			// Keys are words: their first letter is the tenant, their second the class, their third the lane. Turns of lane x are long.
			q := NewOrder(func(word string) Attributes {
				turn := Attributes{Tenant: word[:1], Class: int(word[1] - '0'), Lane: word[2:3]}
				if turn.Lane == "x" {
					turn.Burst = 3
				}
				return turn
			}, nil)
			for word := range strings.FieldsSeq(test.pushed) {
				q.Push(word)
			}
			var order []string
			for q.Len() > 0 {
				order = append(order, q.Pop())
			}
			if got := strings.Join(order, " "); got != test.popped {
				t.Errorf("the order is %s, want %s", got, test.popped)
			}
		})
	}
}
