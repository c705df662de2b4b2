package copying

import (
	"strings"
	"testing"
)

// Keys are words: their first letter is the class, their second the lane.
func TestLanes(t *testing.T) {
	q := newLanes(func(word string) (int, byte) { return int(word[0] - '0'), word[1] })
	for _, word := range strings.Fields("2a1 2a2 2a3 2b1 1c1 2b2 0d1 1c2 1e1") {
		q.Push(word)
	}
	var order []string
	for q.Len() > 0 {
		order = append(order, q.Pop())
	}
	if got, want := strings.Join(order, " "), "0d1 1c1 1e1 1c2 2a1 2b1 2a2 2b2 2a3"; got != want {
		t.Errorf("the order is %s, want %s", got, want)
	}
}
