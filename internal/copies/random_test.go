package copies_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

var (
	limitRange  = limitRangeKind.GroupKind()
	roleBinding = roleBindingKind.GroupKind()
)

// A storm drives a scenario in a random order, as many workers, watches that are behind, and users do together. After each Input it checks
// what must hold in every order.
type storm struct {
	*scenario
	random  *rand.Rand
	parents map[string]string // of the namespaces that move
	answers []delayedAnswer
	// impatient says that the State has just decided to give rights although rails are missing.
	impatient bool
}

// delayedAnswer is what the API server has answered to a request, and what has not reached the State.
type delayedAnswer struct {
	request copies.Request
	inputs  []copies.Input
}

func newStorm(t *testing.T, seed uint64) *storm {
	s := &storm{random: rand.New(rand.NewPCG(seed, 0)), parents: map[string]string{"a": "acme", "a1": "a", "b": "acme", "z": "zeta"}}
	s.scenario = newScenario(t, s.plant(), scenarioKinds()...)
	s.list()
	s.apply(copies.Elected{})
	s.checks = append(s.checks, s.check)
	return s
}

// plant returns the forest with the present parents.
func (s *storm) plant() *forest.Snapshot {
	namespaces := []string{"acme root of tmpl", "zeta root", "tmpl template", "solo"}
	for _, name := range slices.Sorted(maps.Keys(s.parents)) {
		if parent := s.parents[name]; parent != "" {
			name += " in " + parent
		}
		namespaces = append(namespaces, name)
	}
	return planted(namespaces...)
}

// below returns namespace and all namespaces below it, by the present parents.
func (s *storm) below(namespace string) []string {
	all := []string{namespace}
	for name, parent := range s.parents {
		if parent == namespace {
			all = append(all, s.below(name)...)
		}
	}
	return all
}

func (s *storm) pick(n int) int { return s.random.IntN(n) }

func pickFrom[T any](s *storm, all ...T) T { return all[s.pick(len(all))] }

// happen has a user do something.
func (s *storm) happen() {
	kind := pickFrom(s, secret, limitRange, roleBinding, configMap)
	slot := in(pickFrom(s, "acme", "acme", "a", "zeta", "tmpl", "b", "a1"), kind, pickFrom(s, "s", "other"))
	object, exists := s.server.objects[slot]
	isCopy := exists && object.meta.Labels[v1alpha1.LabelInheritedFrom] != ""
	switch n := s.pick(10); {
	case n < 3:
		s.move(pickFrom(s, "a", "a1", "b", "z"), pickFrom(s, "acme", "a", "zeta", "b", "", "missing"))
	case isCopy && n < 6:
		s.note("drift of %s", slot)
		relabel(slot, "drift", fmt.Sprint(s.pick(100)))(s.server)
	case isCopy && n < 7:
		s.note("the label of %s is taken off", slot)
		relabel(slot, v1alpha1.LabelInheritedFrom, "")(s.server)
	case exists && n < 9 || isCopy:
		s.note("%s is deleted", slot)
		remove(slot)(s.server)
	case n == 9:
		s.note("an unrelated %s", slot)
		put(slot, 0, withLabel(v1alpha1.LabelPropagate, "none"))(s.server)
	default:
		s.note("source %s", slot)
		propagated(slot, s.pick(100), update)(s.server)
	}
}

func (s *storm) move(namespace, parent string) {
	if slices.Contains(s.below(namespace), parent) || s.parents[namespace] == parent {
		return
	}
	s.note("%s moves to %q", namespace, parent)
	s.parents[namespace] = parent
	s.server.grow(s.plant(), s.below(namespace)...)
}

// step does one thing of what may happen next.
func (s *storm) step() {
	switch n := s.pick(8); {
	case n < 3 && s.startAny(), n < 5 && s.carryOutAny(), n < 6 && s.receiveAny(), n < 7 && s.deliverAny():
	default:
		s.pass(time.Duration(s.pick(2000)) * time.Millisecond)
	}
}

// startAny has a worker take any key that waits and that no other worker has.
func (s *storm) startAny() bool {
	busy := map[copies.Key]bool{}
	for _, request := range s.underWay() {
		busy[keyOf(request)] = true
	}
	free := slices.DeleteFunc(slices.Clone(s.queue), func(key copies.Key) bool { return busy[key] })
	if len(free) == 0 || len(s.underWay()) > 8 {
		return false
	}
	key := pickFrom(s, free...)
	s.start(key)
	return true
}

func keyOf(request copies.Request) copies.Key {
	switch request.(type) {
	case copies.ReadSource, copies.FindLoss:
		return sourceTask(requestedSlot(request))
	}
	return slotTask(requestedSlot(request))
}

// underWay returns the requests whose answer has not reached the State.
func (s *storm) underWay() []copies.Request {
	all := slices.Clone(s.requests)
	for _, answer := range s.answers {
		all = append(all, answer.request)
	}
	return all
}

// carryOutAny has the API server carry out any request.
func (s *storm) carryOutAny() bool {
	if len(s.requests) == 0 {
		return false
	}
	i := s.pick(len(s.requests))
	request := s.requests[i]
	s.requests = slices.Delete(s.requests, i, i+1)
	s.answers = append(s.answers, delayedAnswer{request, s.server.carryOut(request, s.state.Forest())})
	s.note("carry out: %s", describe(request))
	return true
}

// receiveAny applies the answer to any request.
func (s *storm) receiveAny() bool {
	if len(s.answers) == 0 {
		return false
	}
	i := s.pick(len(s.answers))
	answer := s.answers[i]
	s.answers = slices.Delete(s.answers, i, i+1)
	for _, input := range answer.inputs {
		s.apply(input)
	}
	return true
}

// deliverAny has any watch show its next event.
func (s *storm) deliverAny() bool {
	firsts := map[any]int{}
	for i, event := range s.server.events {
		if of := watchOf(event); firsts[of] == 0 {
			firsts[of] = i + 1
		}
	}
	if len(firsts) == 0 {
		return false
	}
	indices := slices.Sorted(maps.Values(firsts))
	i := pickFrom(s, indices...) - 1
	event := s.server.events[i]
	s.server.events = slices.Delete(s.server.events, i, i+1)
	s.apply(event)
	return true
}

func watchOf(event copies.Input) any {
	switch one := event.(type) {
	case copies.ObjectSeen:
		return one.Watch
	case copies.ObjectGone:
		return one.Watch
	}
	return nil
}

// check fails the test if a request must not be sent.
func (s *storm) check(output copies.Output) {
	if _, is := output.(copies.RightsBeforeRails); is {
		s.impatient = true
	}
	w, isWrite := output.(copies.WriteCopy)
	if !isWrite || w.Action.Verb != copies.Create && w.Action.Verb != copies.Update {
		return
	}
	impatient := s.impatient
	s.impatient = false
	for _, request := range s.underWay() {
		if other, is := request.(copies.WriteCopy); is && other.Action.Verb == copies.Delete && other.Slot.Namespace == w.Slot.Namespace {
			s.fail("%s is written before the DELETE of %s is answered", w.Slot, other.Slot)
		}
	}
	s.state.Read(func(world *copies.World) {
		above, _ := world.Forest.Sources(w.Slot.Namespace)
		for _, slot := range world.SlotsIn(w.Slot.Namespace) {
			c := world.Copies.At(slot)
			if c != nil && c.Ours && c.Hash.Mode == update && !above.Has(c.From) && !above.Frozen(c.From) {
				s.fail("%s is written before %s of %s is removed", w.Slot, slot, c.From)
			}
		}
		if !impatient && w.Action.Verb == copies.Create && w.Slot.Kind == roleBinding && !world.Copies.GiveRightsFrom(w.Slot.Namespace, w.Action.Source.Namespace) {
			s.checkRails(world, w.Slot, above.Names)
		}
	})
}

// checkRails fails the test if a source above gives a rail that the namespace of a RoleBinding does not have.
func (s *storm) checkRails(world *copies.World, binding copies.Slot, above []string) {
	for _, kind := range []schema.GroupKind{secret, limitRange, configMap} {
		for _, from := range above {
			for _, source := range world.Sources.In(kind, from) {
				rail := source.At(binding.Namespace)
				if world.Sources.At(source).Mode != update || world.Copies.At(rail) != nil || world.Sources.At(rail) != nil {
					continue
				}
				if object, stands := s.server.objects[rail]; !s.isInConflict(rail) && (!stands || object.meta.Labels[v1alpha1.LabelInheritedFrom] != "") {
					s.fail("%s gives rights before %s, whose plan is %+v", binding, rail, world.Plan(rail))
				}
			}
		}
	}
}

// isInConflict reports whether the State takes another object to be at slot.
func (s *storm) isInConflict(slot copies.Slot) bool {
	return slices.ContainsFunc(s.state.Troubles(slices.Values([]string{slot.Namespace})), func(trouble copies.Trouble) bool {
		return trouble.Slot == slot && trouble.Reason == v1alpha1.ReasonConflict
	})
}

// calm answers everything that is under way, and works everything off.
func (s *storm) calm() {
	for s.receiveAny() {
	}
	s.settle()
}

// requireEnd fails the test unless each namespace has the copies that its place says.
func (s *storm) requireEnd() {
	s.Helper()
	for namespace := range s.parents {
		want, got := map[string]string{}, map[string]string{}
		for _, from := range s.above(namespace) {
			for slot, object := range s.server.objects {
				mark := slot.At(namespace)
				lower, taken := s.server.objects[mark]
				taken = taken && lower.meta.Labels[v1alpha1.LabelInheritedFrom] == ""
				if slot.Namespace == from && s.isSource(slot, object) && want[mark.String()] == "" && !taken {
					want[mark.String()] = from + " " + object.content
				}
			}
		}
		for slot, object := range s.server.objects {
			if from := object.meta.Labels[v1alpha1.LabelInheritedFrom]; slot.Namespace == namespace && from != "" {
				got[slot.String()] = from + " " + object.content
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			s.fail("the copies in %s (-want +got):\n%s\nplans: %s", namespace, diff, s.plansIn(namespace))
		}
	}
}

// plansIn returns what the State knows of the slots in a namespace.
func (s *storm) plansIn(namespace string) (all []string) {
	s.state.Read(func(w *copies.World) {
		for _, slot := range w.SlotsIn(namespace) {
			all = append(all, fmt.Sprintf("%s is %+v: %+v\n", slot, w.Copies.At(slot), w.Plan(slot)))
		}
	})
	return all
}

// above returns the namespaces whose sources reach namespace, the topmost first, by the present parents.
func (s *storm) above(namespace string) []string {
	parent := s.parents[namespace]
	switch parent {
	case "":
		return nil
	case "acme":
		return []string{"tmpl", "acme"}
	case "zeta":
		return []string{"zeta"}
	}
	return append(s.above(parent), parent)
}

func (s *storm) isSource(slot copies.Slot, object apiObject) bool {
	source, is := copies.Rules{}.SourceOf(slot, object.meta, s.server.kindOf(slot).Mode)
	return is && source.Mode == update
}

// PROP-V3 in any order: namespaces move to and fro, sources and copies come and go, and the watches are behind.
func TestAnyOrder(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("PROP-V3 PROP-O1 PROP-V1 seed ", seed), func(t *testing.T) {
			s := newStorm(t, seed)
			for range 60 {
				s.happen()
				for range s.pick(20) {
					s.step()
				}
			}
			for name, parent := range s.parents { // copies below a namespace that is in no tree stay as they are
				if parent == "missing" || parent == "" && len(s.below(name)) > 1 {
					s.move(name, "zeta")
				}
			}
			s.calm()
			s.requireEnd()
			s.requireSettled()
		})
	}
}
