package apianswer_test

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/warren-tenancy/warren/internal/apianswer"
)

func refuse(text string) error { return apierrors.NewForbidden(secrets, "s", errors.New(text)) }

func TestARefusedRequestWaits(t *testing.T) {
	var changes []string
	r := apianswer.Refusals{Changed: func(_, text string) { changes = append(changes, text) }}
	sent := 0
	try := func(key, version string, answer error) time.Duration {
		again, err := r.Try(apianswer.Attempt{Key: key, Request: apianswer.RequestOf(version), RetryMax: time.Minute, Send: func() error {
			sent++
			return answer
		}})
		if err != nil {
			t.Errorf("got error %v", err)
		}
		return again
	}
	if again := try("x", "1", refuse("no 1")); again != time.Second {
		t.Errorf("after the first refusal it waits %s", again)
	}
	if again := try("x", "1", refuse("no 2")); again == 0 || sent != 1 {
		t.Errorf("it waits %s, and %d requests were sent: want one", again, sent)
	}
	if try("y", "1", nil) != 0 || sent != 2 {
		t.Error("what is asked about something else need not wait")
	}
	if again := try("x", "2", refuse("no 3")); again != time.Second || sent != 3 {
		t.Errorf("another request begins anew, and waits %s", again)
	}
	if got := r.Of("x"); got == "" || try("x", "3", nil) != 0 || r.Of("x") != "" {
		t.Errorf("a refusal, %q, is kept until the request succeeds", got)
	}
	if len(changes) != 3 || changes[0] == changes[1] || changes[2] != "" {
		t.Errorf("changes: %q", changes)
	}
}

func TestWhatCountsAsARefusal(t *testing.T) {
	for name, c := range map[string]struct {
		err                error
		waits, withOutages bool
	}{
		"forbidden":      {refuse("no"), true, true},
		"no answer":      {errors.New("connection refused"), false, true},
		"conflict":       {apierrors.NewConflict(secrets, "s", errors.New("changed")), false, true},
		"gone":           {apierrors.NewNotFound(secrets, "s"), false, true},
		"already exists": {apierrors.NewAlreadyExists(secrets, "s"), false, false},
	} {
		for outages, want := range map[bool]bool{false: c.waits, true: c.withOutages} {
			var r apianswer.Refusals
			again, err := r.Try(apianswer.Attempt{RetryMax: time.Minute, Outages: outages, Send: func() error { return c.err }})
			if (again > 0) != want || (err != nil) == want {
				t.Errorf("%s, outages %t: waits %s, error %v", name, outages, again, err)
			}
		}
	}
}

func TestTheBackOffGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r apianswer.Refusals
		for i, want := range []time.Duration{1, 2, 3, 3} {
			again, _ := r.Try(apianswer.Attempt{RetryMax: 3 * time.Second, Send: func() error { return refuse(strconv.Itoa(i)) }})
			if again != want*time.Second {
				t.Errorf("try %d waits %s, want %ds: a text that varies is no other request", i, again, want)
			}
			time.Sleep(again) // of the test's own clock
		}
	})
}
