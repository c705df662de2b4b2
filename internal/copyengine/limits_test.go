package copyengine_test

import (
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// number puts source number i into acme. The sources are created one after the other.
func number(i int) func(*apiServer) {
	return propagated(in("acme", secret, fmt.Sprint("s", i)), 1, update)
}

func TestLimitsOfAState(t *testing.T) {
	count := func(want map[string]int) step {
		return step{func(s *scenario) []string {
			s.Helper()
			got := map[string]int{}
			for slot, object := range s.server.objects {
				if object.meta.Labels[v1alpha1.LabelInheritedFrom] != "" {
					got[slot.Name]++
				}
			}
			return []string{gocmp.Diff(want, got)}
		}, []string{""}}
	}
	to := func(copies int32, bytes int64) step {
		return step{func(s *scenario) []string {
			s.raised = true
			s.apply(s.moved(limited(copies, bytes), "acme", "a", "a1", "b"))
			s.settle()
			return nil
		}, nil}
	}
	change := func(change func(*apiServer)) step {
		return step{func(s *scenario) []string { change(s.server); s.settle(); return nil }, nil}
	}
	s := func(i int) copies.Slot { return in("acme", secret, fmt.Sprint("s", i)) }
	for name, test := range map[string]struct {
		copies int32
		bytes  int64
		steps  []step
	}{
		"PROP-L1 the oldest sources get all their copies; a younger one " +
			"whose claim does not fit gets none": {7, -1, []step{change(number(1)), change(number(2)), change(number(3)),
			count(map[string]int{"s1": 3, "s2": 3})}},
		"PROP-L2 limit bytes counts the " +
			"size of each copy": {-1, 300, []step{change(number(1)), change(number(2)), count(map[string]int{"s1": 3})}},
		"PROP-L3 with limits 0, a source of the " +
			"tree itself has no copy": {0, 0, []step{change(number(1)), change(propagated(at("tmpl"), 1, update)),
			count(map[string]int{})}},
		"PROP-L4 a lower limit deletes no copy": {6, -1, []step{change(number(1)), change(number(2)), to(1, -1),
			count(map[string]int{"s1": 3, "s2": 3})}},
		"PROP-L5 when the oldest source is deleted with its copies, the older of two that were held back is copied": {3, -1, []step{
			change(number(1)), change(number(2)), change(number(3)), count(map[string]int{"s1": 3}), change(remove(s(1))),
			count(map[string]int{"s2": 3}),
		}},
		"PROP-L6 if bytes are used up, copies of a source that grows are held back and reported, until it shrinks": {-1, 400, []step{
			change(number(1)), change(resized(s(1), 2, 200)), troubledSecret(s(1)), change(resized(s(1), 3, 90)), count(map[string]int{"s1": 3}),
		}},
		"PROP-L7 after the limit is raised, the source that was held back is copied": {6, -1, []step{
			change(number(1)), change(number(2)), change(number(3)), count(map[string]int{"s1": 3, "s2": 3}), to(9, -1),
			count(map[string]int{"s1": 3, "s2": 3, "s3": 3}),
		}},
		"PROP-L8 with limits 0, a source in the root whose name " +
			"begins with warren-rail- is copied": {0, 0, []step{change(propagated(in("acme", secret, "warren-rail-1"), 1, update)),
			count(map[string]int{"warren-rail-1": 3})}},
	} {
		t.Run(name, func(t *testing.T) {
			sc := leading(t, limited(test.copies, test.bytes))
			sc.checks = append(sc.checks, func(output copyengine.Output) { requireWithin(sc, test.copies, output) })
			sc.run(test.steps...)
			sc.requireSettled()
		})
	}
}

// inFlight returns a scenario with three writes in flight: those of the copies of acme/s1.
func inFlight(t *testing.T, mode string, copies int32, bytes int64) *scenario {
	s := newScenario(t, limited(copies, bytes), scenarioKinds()...)
	s.list()
	s.apply(copyengine.Elected{})
	propagated(in("acme", secret, "s1"), 1, mode)(s.server)
	s.readSource("s1", "acme")
	for _, namespace := range []string{"a", "a1", "b"} {
		s.start(slotTask(in(namespace, secret, "s1")))
	}
	return s
}

// answerAll answers writes of copies of acme/s1.
func (s *scenario) answerAll(namespaces ...string) {
	for _, namespace := range namespaces {
		s.answer(in(namespace, secret, "s1"))
	}
}

// readSource has the State read a source.
func (s *scenario) readSource(name, namespace string) {
	s.deliver()
	s.start(sourceTask(in(namespace, secret, name)))
	s.answer(in(namespace, secret, name))
}

func TestLimitsAndWritesInFlight(t *testing.T) {
	t.Run("PROP-L2 limit bytes counts the size that a copy was written with, also "+
		"where its source has grown since the write was planned", func(t *testing.T) {
		s := inFlight(t, create, -1, 700)
		resized(in("acme", secret, "s1"), 2, 200)(s.server) // such a write reads the source again
		s.answerAll("a", "a1", "b")
		remove(in("acme", secret, "s1"))(s.server)
		s.settle()
		number(2)(s.server)
		s.settle()
		s.run(troubledSecret(in("acme", secret, "s2")))
	})
	t.Run("PROP-L10 an older source that appears while copies of a younger one are written gets no copy beyond the limit", func(t *testing.T) {
		s := inFlight(t, update, 3, -1)
		older := func(m *metav1.ObjectMeta) { m.CreationTimestamp = metav1.Unix(1, 0) }
		propagated(in("a", secret, "older"), 1, update, older)(s.server)
		s.readSource("older", "a")
		number(2)(s.server)
		s.readSource("s2", "acme")
		s.answerAll("a")
		s.start(slotTask(in("b", secret, "s2"))) // the limits are counted now
		s.answerAll("a1", "b")
		s.settle()
		if object, made := s.server.objects[in("a1", secret, "older")]; made {
			s.fail("a fourth copy was made: %v", object.meta)
		}
	})
}

// copiesMade returns the copies that exist.
func (s *scenario) copiesMade() (all []string) {
	for slot, object := range s.server.objects {
		if object.meta.Labels[v1alpha1.LabelInheritedFrom] != "" {
			all = append(all, slot.String())
		}
	}
	slices.Sort(all)
	return all
}

func TestLimitsOfASourceWhoseSelectorChanges(t *testing.T) {
	for name, mode := range map[string]string{
		"PROP-L11 in mode create, a source whose selector goes from namespace to namespace gets no " +
			"copies beyond the limit": create,
		"PROP-L11 in mode update, a source whose selector goes on while finalizers keep the copies " +
			"before gets no copies beyond the limit": update,
	} {
		t.Run(name, func(t *testing.T) {
			s := leading(t, limited(1, -1))
			for i, namespace := range []string{"a", "a1", "b"} {
				propagated(at("acme"), i+1, mode, withAnnotation(v1alpha1.AnnotationSelect, "kubernetes.io/metadata.name="+namespace))(s.server)
				s.settle()
				if made, is := s.server.objects[at(namespace)]; is && mode == update {
					made.meta = made.meta.DeepCopy()
					made.meta.Finalizers = []string{"example.com/keep"}
					s.server.store(at(namespace), made)
					s.settle()
				}
			}
			if made := s.copiesMade(); len(made) > 1 {
				t.Fatalf("%d copies with a limit of 1: %v", len(made), made)
			}
		})
	}
}

// requireNothingHeld fails the test if a look at the limits of acme leads to more copies.
func (s *scenario) requireNothingHeld() {
	s.Helper()
	s.settle()
	before := s.copiesMade()
	s.keep(copyengine.Queue{Keys: []copyengine.Key{{Task: copyengine.LookAtLimits, Slot: copies.Slot{Namespace: "acme"}}}})
	s.settle()
	if after := s.copiesMade(); !slices.Equal(before, after) {
		s.Fatalf("a look at the limits writes more:\n%v\n%v", before, after)
	}
}

func TestLimitsThatLeaveRoomAgain(t *testing.T) {
	t.Run("PROP-L12 when the kind of an older source is no longer served, younger sources that waited "+
		"behind it are copied", func(t *testing.T) {
		s := leading(t, limited(4, -1))
		for _, source := range []copies.Slot{in("acme", secret, "s1"), in("acme", limitRange, "l"), at("a")} {
			propagated(source, 1, update)(s.server)
			s.settle()
		}
		for _, role := range []copyengine.Role{copyengine.SourcesAlone, copyengine.CopiesAlone} {
			s.apply(copyengine.WatchChanged{Watch: copyengine.Watch{Kind: limitRange, Role: role},
				Status: watchset.Status{State: watchset.NotServed}})
		}
		s.requireNothingHeld()
	})
	t.Run("PROP-L12 when an older source shrinks whose copies all have objects in their way, younger sources that waited are copied",
		func(t *testing.T) {
			s := leading(t, limited(-1, 500))
			for _, namespace := range []string{"a", "a1", "b"} {
				put(at(namespace), 9, withLabel(v1alpha1.LabelInheritedFrom, "nowhere"))(s.server)
			}
			for _, source := range []copies.Slot{at("acme"), other("acme")} {
				propagated(source, 1, update)(s.server)
				s.settle()
			}
			resized(at("acme"), 3, 20)(s.server)
			s.requireNothingHeld()
		})
}

// troubledSecret checks that the State reports for a source, and for nothing else, that limits hold back its copies.
func troubledSecret(source copies.Slot) step {
	return step{func(s *scenario) (words []string) {
		for _, trouble := range s.state.Troubles(slices.Values([]string{source.Namespace})) {
			words = append(words, fmt.Sprint(trouble.Reason, " ", trouble.Slot))
		}
		return words
	}, []string{"LimitExceeded " + source.String()}}
}

// requireWithin fails the test if a POST would make more copies than most; a negative number means no limit. A copy of the rail doesn't
// count.
func requireWithin(s *scenario, most int32, output copyengine.Output) {
	w, is := output.(copyengine.WriteCopy)
	if !is || most < 0 || w.Action.Verb != copies.Create || w.Action.Source.Name == "warren-rail-1" {
		return
	}
	made := int32(1)
	for _, object := range s.server.objects {
		if object.meta.Labels[v1alpha1.LabelInheritedFrom] != "" {
			made++
		}
	}
	if made > most && s.state.Forest() == s.server.forest && !s.raised {
		s.fail("copy number %d of at most %d is written", made, most)
	}
}
