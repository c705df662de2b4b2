package apianswer_test

import (
	"errors"
	"testing"
	"time"

	"github.com/warren-tenancy/warren/internal/apianswer"
)

func TestRefusals(t *testing.T) {
	var r apianswer.Refusals
	one, other := apianswer.RequestOf("1", map[string]string{"team": "x"}), apianswer.RequestOf("2", map[string]string{"team": "x"})
	var waits []time.Duration
	for _, text := range []string{"no 1", "no 2", "no 3", "no 4"} {
		again, news := r.Note("x", one, errors.New(text), 3*time.Second)
		if !news {
			t.Errorf("%q is another text", text)
		}
		waits = append(waits, again)
	}
	for i, want := range []time.Duration{1, 2, 3, 3} {
		if waits[i] != want*time.Second {
			t.Errorf("try %d waits %s, want %ds: a text that varies is no other request", i, waits[i], want)
		}
	}
	if r.Wait("x", one) == 0 || r.Wait("x", other) != 0 || r.Wait("y", one) != 0 {
		t.Error("the same request of the same key waits, and no other")
	}
	if again, _ := r.Note("x", other, errors.New("no 4"), time.Minute); again != time.Second {
		t.Errorf("another request begins anew, and waits %s", again)
	}
	if r.Of("x") != "no 4" || !r.Clear("x") || r.Of("x") != "" || r.Clear("x") {
		t.Error("a refusal is kept until it is cleared")
	}
}
