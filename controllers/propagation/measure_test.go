package propagation

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/propagate"
)

func TestFanouts(t *testing.T) {
	secrets := schema.GroupKind{Kind: "Secret"}
	at := func(namespace string) propagate.Slot {
		return propagate.Slot{Kind: secrets, Namespace: namespace, Name: "s"}
	}
	plan := func(slot propagate.Slot) propagate.Action {
		if slot.Namespace == "right" {
			return propagate.Action{}
		}
		return propagate.Action{Verb: propagate.Create}
	}
	start := time.Now()
	f := newFanouts()

	f.spread(at("root"), []propagate.Slot{at("a")}, plan)
	if len(f.under) != 0 {
		t.Fatal("a source that had no event is on no way")
	}
	f.begin(at("root"), start)
	f.spread(at("root"), []propagate.Slot{at("right")}, plan)
	if len(f.under) != 0 || len(f.began) != 0 {
		t.Fatal("nothing to write is no way")
	}

	f.begin(at("root"), start)
	f.spread(at("root"), []propagate.Slot{at("a"), at("b"), at("right")}, plan)
	if ended := f.answered(at("a")); len(ended) != 0 {
		t.Fatal("b is still to come")
	}
	if ended := f.answered(at("a")); len(ended) != 0 {
		t.Fatal("an answer counts once")
	}
	f.begin(at("other"), start)
	f.spread(at("other"), []propagate.Slot{at("z")}, plan)
	ended := f.answered(at("b"))
	if len(ended) != 1 || ended[0].verb != "POST" || !ended[0].since.Equal(start) {
		t.Fatalf("got %v, want the way of root", ended)
	}

	later := start.Add(time.Second)
	f.begin(at("other"), later)
	f.spread(at("other"), []propagate.Slot{at("z")}, plan)
	if ended := f.answered(at("z")); len(ended) != 1 || !ended[0].since.Equal(later) {
		t.Fatalf("got %v, want the newer event alone", ended)
	}
	if len(f.under) != 0 || len(f.began) != 0 {
		t.Fatal("nothing is kept")
	}
}
