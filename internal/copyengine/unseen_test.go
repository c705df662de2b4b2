package copyengine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

func TestDegradedSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		now  watchset.Status
		want string
	}{
		"PROP-X12 readyz describes a kind without room for its watch " +
			"as Degraded, and names the limits": {watchset.Status{State: watchset.Pending, Err: watchset.ErrLimit},
			`kind Secret of group "" is Degraded: it is not watched, because informers.maxInformers or informers.maxNamespaces is reached`},
		"PROP-X5 readyz describes a kind whose list fails as " +
			"Degraded, and for how long": {watchset.Status{State: watchset.Degraded, Err: errors.New("the converter is down")},
			`kind Secret of group "" is Degraded: the API server has not listed it for at least `},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t, acme(), copyengine.Kind{GroupVersionKind: secretKind, Mode: copies.OptIn, Scope: copyengine.Cluster})
			s.apply(copyengine.WatchChanged{Watch: copyengine.Watch{Kind: secret, Role: copyengine.SourcesAlone}, Status: c.now})
			if got := s.state.DescribeBlind(); len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
				t.Errorf("got %q, want one sentence that begins with %q", got, c.want)
			}
		})
	}
}

// In component hardened the operator's rights go, and its watches, once a namespace that has left the forest holds no copies.
func TestANamespaceThatLeavesWhileACopyIsWritten(t *testing.T) {
	t.Run("PROP-K30 a namespace that leaves the forest while a copy is written there is followed until the answer "+
		"has come and the copy is deleted", func(t *testing.T) {
		s := newScenario(t, acme(), scenarioKinds()...)
		s.list()
		s.apply(copyengine.Elected{})
		s.apply(copyengine.FollowDue{})
		propagated(at("acme"), 1, update)(s.server)
		s.readSource("s", "acme")
		s.start(slotTask(at("b")))
		left := planted("acme root", "a in acme", "a1 in a", "b", "zeta root", "z in zeta", "tmpl template", "solo")
		s.apply(s.moved(left, "b"))
		if words := s.apply(copyengine.FollowDue{}); len(words) > 0 || !s.state.HoldsCopies("b") {
			t.Fatalf("nothing may be deleted in b any more: %v", words)
		}
		s.answer(at("b"))
		if !s.state.HoldsCopies("b") {
			t.Fatal("b holds a copy")
		}
		s.settle()
		if _, there := s.server.objects[at("b")]; there || s.state.HoldsCopies("b") {
			t.Fatalf("the copy exists: %t; HoldsCopies: %t", there, s.state.HoldsCopies("b"))
		}
		if words := s.apply(copyengine.FollowDue{}); len(words) != 1 || strings.Contains(words[0], " b,") {
			t.Errorf("b is followed for ever: %v", words)
		}
	})
}
