package copyengine_test

import (
	"slices"
	"testing"

	"github.com/warren-tenancy/warren/internal/copyengine"
)

// workIn carries out all work of a tree, and leaves that of others.
func (s *scenario) workIn(namespaces ...string) (reported []string) {
	s.Helper()
	s.checks = []func(copyengine.Output){func(one copyengine.Output) {
		if report, ok := one.(copyengine.Report); ok {
			reported = append(reported, report.Namespaces...)
		}
	}}
	for range limit {
		next := slices.IndexFunc(s.queue, func(key copyengine.Key) bool { return slices.Contains(namespaces, key.Slot.Namespace) })
		if next < 0 {
			s.checks = nil
			return reported
		}
		s.start(s.queue[next])
		for len(s.requests) > 0 {
			s.answerNth(0)
		}
	}
	s.fail("the work does not end")
	return nil
}

func (s *scenario) requireKnown(want bool, namespaces ...string) {
	s.Helper()
	for _, namespace := range namespaces {
		if got := s.state.IsKnown(namespace); got != want {
			s.fail("namespace %s: known is %t, want %t", namespace, got, want)
		}
	}
}

func TestOneBusyTenantHidesNoTroubles(t *testing.T) {
	acmes, zetas := []string{"acme", "a", "a1", "b"}, []string{"zeta", "z"}
	obstacle := put(at("z"), 2)
	for name, isTickFirst := range map[string]bool{
		"PROP-R10 zeta's conflict is reported as soon as zeta's own first work is done, whatever acme's users change": false,
		"PROP-R10 acme is not known before its own first work is done, however often its source changes":              true,
	} {
		t.Run(name, func(t *testing.T) {
			s := newLeader(t, propagated(at("acme"), 1, update), propagated(at("zeta"), 1, update), obstacle)
			tick := func() []string { return s.apply(copyengine.Ticked{Synced: true}) }
			s.requireKnown(false, append(acmes, zetas...)...)
			if isTickFirst {
				tick()
			}
			s.requireKnown(false, append(acmes, zetas...)...)
			reported := s.workIn(zetas...)
			if !isTickFirst {
				reported = tick()
				if !slices.Equal(reported, []string{"report z, zeta"}) {
					t.Errorf("got %v, want a report of z and zeta", reported)
				}
			} else if !slices.Contains(reported, "z") || !slices.Contains(reported, "zeta") {
				t.Errorf("got reports of %v, want z and zeta among them", reported)
			}
			s.requireKnown(true, zetas...)
			s.requireKnown(false, acmes...)

			for range 20 { // acme's users change their Secret again and again
				propagated(at("acme"), 1, update)(s.server)
				for len(s.server.events) > 0 {
					s.deliver()
				}
				s.workIn("acme")
			}
			s.requireKnown(true, zetas...)
			s.requireKnown(false, acmes...)
			s.workIn("a", "a1", "b")
			propagated(at("acme"), 1, update)(s.server)
			for len(s.server.events) > 0 {
				s.deliver()
			}
			s.requireKnown(true, append(acmes, zetas...)...)
		})
	}
	t.Run("PROP-R10 a namespace whose write is tried again is not known", func(t *testing.T) {
		s := newLeader(t, propagated(at("acme"), 1, update), propagated(at("zeta"), 1, update))
		s.server.refuse = func(write copyengine.WriteCopy) error {
			if write.Slot == at("z") {
				return unavailable()
			}
			return nil
		}
		s.apply(copyengine.Ticked{Synced: true})
		s.workIn(zetas...)
		s.requireKnown(false, zetas...)
		s.server.refuse = nil
		s.wake(s.now.Add(1 << 40))
		s.workIn(zetas...)
		s.requireKnown(true, zetas...)
	})
}
