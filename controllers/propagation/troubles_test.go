package propagation

import (
	"slices"
	"testing"
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

func TestTroubles(t *testing.T) {
	r, told, _ := removalsOf(tablesOf())
	tr, slot := r.troubles, secretsIn("a")
	conflict := trouble{reason: v1alpha1.ReasonConflict, from: "acme", text: "an object of that name exists"}

	if noted, isNew := tr.note(slot, conflict); !isNew || noted.tries != 1 || !slices.Contains(*told, "a") || !slices.Contains(*told, "acme") {
		t.Fatalf("got %v, told %v", noted, *told)
	}
	*told = nil
	if noted, isNew := tr.note(slot, conflict); isNew || noted.tries != 2 || len(*told) != 0 {
		t.Fatalf("got %v, told %v: nothing is new", noted, *told)
	}
	if noted, _ := tr.note(slot, trouble{}); noted.reason != v1alpha1.ReasonConflict {
		t.Fatal("what passes by itself hides nothing")
	}
	if !tr.announce(slot) || tr.announce(slot) {
		t.Fatal("the owner gets one Event")
	}
	tr.clearTransient(slot)
	if !tr.of(slot).obstructed() {
		t.Fatal("a conflict doesn't pass by itself")
	}
	if was := tr.clear(slot); !was.announced || len(*told) == 0 || tr.in("a") != nil {
		t.Fatalf("got %v, told %v", was, *told)
	}
}

func TestNoticesAreSentOnceInTheQuietTime(t *testing.T) {
	n, now := &notices{quiet: time.Minute, sent: map[notice]time.Time{}}, time.Now()
	one := notice{secretsIn("a"), v1alpha1.ReasonConflict}
	if !n.isDue(one, now) || n.isDue(one, now.Add(59*time.Second)) || !n.isDue(one, now.Add(time.Minute)) {
		t.Fatal("one in a minute")
	}
	for i := range 100 {
		n.isDue(notice{secretsIn(string(rune('a' + i))), v1alpha1.ReasonConflict}, now.Add(time.Minute))
	}
	n.isDue(one, now.Add(time.Hour))
	if len(n.sent) != 1 {
		t.Fatalf("%d are kept, want the latest alone", len(n.sent))
	}
}
