package distribution

import (
	"testing"
	"time"

	"github.com/warren-tenancy/warren/internal/distribute"
)

func TestTroublesCountTries(t *testing.T) {
	all := newTroubles()
	backoff := func(tries int) time.Duration { return time.Duration(tries) * time.Hour }
	failure := &distribute.Failure{Message: "no"}
	if delay, tries := all.note("d1", failure, backoff); delay != time.Hour || tries != 1 {
		t.Errorf("got %s and %d tries, want an hour for the first", delay, tries)
	}
	if delay, tries := all.note("d1", nil, backoff); delay != 2*time.Hour || tries != 2 {
		t.Errorf("got %s and %d tries, want two hours for the second", delay, tries)
	}
	known, ok := all.find("d1")
	if !ok || known.failure != failure {
		t.Errorf("got %+v, want what is known of the refusal: that a later request got no answer says nothing of it", known)
	}
	if known.isPast(time.Now()) || !known.isPast(time.Now().Add(3*time.Hour)) {
		t.Error("the target is tried again at another time than the back-off says")
	}
	before := all.all()
	all.clear("d1")
	if _, ok := all.find("d1"); ok || len(before) != 1 {
		t.Error("the trouble is still there, or has gone from what was asked before")
	}
	all.note("d2", failure, backoff)
	all.reset()
	if len(all.all()) != 0 {
		t.Error("a new spec starts with the troubles of the old one")
	}
}
