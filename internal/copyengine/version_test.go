package copyengine_test

import (
	"strings"
	"testing"

	"github.com/warren-tenancy/warren/internal/copyengine"
)

// serveInV2 shows the State that the API server serves Secrets in v2 from now on.
func (s *scenario) serveInV2() {
	kind := secretKind
	kind.Version = "v2"
	for _, role := range scenarioKinds()[0].Roles() {
		s.apply(copyengine.WatchChanged{Watch: copyengine.Watch{Kind: secret, Role: role}, Status: syncedStatus(kind)})
	}
}

func (s *scenario) requireCopiedInV2() {
	s.Helper()
	s.settle()
	for _, namespace := range []string{"a", "a1", "b"} {
		if content := s.server.objects[at(namespace)].content; !strings.HasSuffix(content, " and more") {
			s.fail("the copy in %s has %q, without the field of v2", namespace, content)
		}
	}
	s.requireSettled()
}

func TestAnotherVersionHasOtherContent(t *testing.T) {
	t.Run("PROP-X13 sources are read again when their kind is followed in another version", func(t *testing.T) {
		s := leading(t, acme(), propagated(at("acme"), 1, update))
		s.serveInV2()
		s.requireCopiedInV2()
	})
	t.Run("PROP-X13 a read in the old version that is still under way does not count", func(t *testing.T) {
		s := newLeader(t, propagated(at("acme"), 1, update))
		s.start(sourceTask(at("acme")))
		s.serveInV2()
		s.answer(at("acme"))
		s.requireCopiedInV2()
	})
}

func TestVanishedSourcesLeaveNothing(t *testing.T) {
	t.Run("PROP-S8 if a source is deleted while the operator reads it, the answer is not kept", func(t *testing.T) {
		s := newLeader(t, propagated(at("acme"), 1, update))
		s.start(sourceTask(at("acme")))
		read := s.server.carryOut(s.requests[0], s.state.Forest())
		remove(at("acme"))(s.server)
		for len(s.server.events) > 0 {
			s.deliver()
		}
		for _, input := range read {
			s.apply(input)
		}
		if n := s.state.KeptReads(); n != 0 {
			t.Errorf("the State keeps what %d reads have shown, though no source exists", n)
		}
	})
}
