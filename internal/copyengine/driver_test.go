package copyengine_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// A scenario drives one State without a cluster. A table test has steps, each with one Input and the Outputs that are expected. An
// apiServer answers the Requests. The tests with random orders and random faults are in test/simulation.
type scenario struct {
	testing.TB
	state  *copyengine.State
	now    time.Time
	server *apiServer

	queue    []copyengine.Key             // the keys that wait, in the order in which they came
	timers   map[copyengine.Key]time.Time // the keys that wait until a time has come
	requests []copyengine.Request         // without an answer yet, in the order in which they came
	checks   []func(copyengine.Output)    // are called with each Output
	raised   bool                         // whether a limit was raised since the beginning
	history  []string                     // what has happened, in words, for a test that fails
}

var (
	secretKind      = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	configMapKind   = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	limitRangeKind  = schema.GroupVersionKind{Version: "v1", Kind: "LimitRange"}
	roleBindingKind = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}
)

// scenarioKinds are the kinds of a scenario: ConfigMaps in mode All, the others in mode OptIn, each in the whole cluster.
func scenarioKinds() []copyengine.Kind {
	return []copyengine.Kind{
		{GroupVersionKind: secretKind, Mode: copies.OptIn, Scope: copyengine.Cluster}, {GroupVersionKind: configMapKind, Mode: copies.All,
			Scope: copyengine.Cluster},
		{GroupVersionKind: limitRangeKind, Mode: copies.OptIn, Scope: copyengine.Cluster}, {GroupVersionKind: roleBindingKind, Mode: copies.OptIn,
			Scope: copyengine.Cluster},
	}
}

// newScenario returns a scenario whose State knows the forest, but no object of any kind.
func newScenario(t testing.TB, f *forest.Snapshot, kinds ...copyengine.Kind) *scenario {
	settings := copyengine.Settings{Kinds: kinds, RetryMin: time.Second, RetryMax: 5 * time.Minute, Timing: copyengine.DefaultTiming()}
	return &scenario{
		TB: t, state: copyengine.NewState(f, settings), now: time.Unix(1_000_000, 0), timers: map[copyengine.Key]time.Time{},
		server: newAPIServer(f, kinds),
	}
}

// leading returns a scenario whose State leads, knows everything that facts have put into the API server, and has no work left.
func leading(t testing.TB, f *forest.Snapshot, facts ...func(*apiServer)) *scenario {
	s := newScenario(t, f, scenarioKinds()...)
	for _, fact := range facts {
		fact(s.server)
	}
	s.server.events = nil
	s.list()
	s.apply(copyengine.Elected{})
	s.settle()
	s.apply(copyengine.Ticked{Idle: true})
	return s
}

// list shows the State everything that exists, as the watches do after a start.
func (s *scenario) list() {
	for _, kind := range s.server.kinds {
		for _, role := range kind.Roles() {
			watch := copyengine.Watch{Kind: kind.GroupKind(), Role: role}
			s.apply(copyengine.Listed{Watch: watch, ResourceVersion: fmt.Sprint(s.server.version), Objects: s.server.list(watch)})
			s.apply(copyengine.WatchChanged{Watch: watch, Status: syncedStatus(kind.GroupVersionKind)})
		}
	}
}

func syncedStatus(kind schema.GroupVersionKind) watchset.Status {
	return watchset.Status{State: watchset.Synced, Kind: kind, Resource: kind.GroupVersion().WithResource(strings.ToLower(kind.Kind) + "s")}
}

// apply applies one Input, carries on with what follows from it, and returns the Outputs in words.
func (s *scenario) apply(input copyengine.Input) (words []string) {
	s.Helper()
	outputs := s.state.Apply(s.now, input)
	requests := 0
	for _, output := range outputs {
		for _, check := range s.checks {
			check(output)
		}
		switch one := output.(type) {
		case copyengine.Queue:
			s.keep(one)
		case copyengine.Request:
			requests++
			s.requests = append(s.requests, one)
		}
		words = append(words, describe(output))
	}
	s.note("%s: %s", describeInput(input), strings.Join(words, "; "))
	if requests > 1 {
		s.Fatalf("%T has led to %d requests: %v", input, requests, words)
	}
	return words
}

func (s *scenario) note(format string, args ...any) {
	s.history = append(s.history, fmt.Sprintf(format, args...))
}

// fail fails the test, and shows the last things that happened.
func (s *scenario) fail(format string, args ...any) {
	s.Helper()
	s.Fatalf("%s; before that:\n%s", fmt.Sprintf(format, args...), strings.Join(s.history[max(0, len(s.history)-200):], "\n"))
}

// keep queues keys as internal/fairqueue does: equal keys once.
func (s *scenario) keep(q copyengine.Queue) {
	seen := map[copyengine.Key]bool{}
	slices.SortFunc(q.Keys, compareKeys) // a map has random order, and a failure must be repeatable
	for _, key := range q.Keys {
		if seen[key] {
			s.Fatalf("key %s occurs twice", describeKey(key))
		}
		seen[key] = true
		switch at, waits := s.timers[key]; {
		case q.After == 0 && !slices.Contains(s.queue, key):
			s.queue = append(s.queue, key)
		case q.After > 0 && (!waits || s.now.Add(q.After).Before(at)):
			s.timers[key] = s.now.Add(q.After)
		}
	}
}

// start applies a Started for a key that waits.
func (s *scenario) start(key copyengine.Key) []string {
	s.queue = slices.DeleteFunc(s.queue, func(other copyengine.Key) bool { return other == key })
	return s.apply(copyengine.Started{Key: key})
}

// answer carries out the oldest request for slot on the API server, and applies the answer.
func (s *scenario) answer(slot copies.Slot) (words []string) {
	s.Helper()
	i := slices.IndexFunc(s.requests, func(request copyengine.Request) bool { return requestedSlot(request) == slot })
	if i < 0 {
		s.Fatalf("there is no request for %s", slot)
	}
	return s.answerNth(i)
}

func (s *scenario) answerNth(i int) (words []string) {
	request := s.requests[i]
	s.requests = slices.Delete(s.requests, i, i+1)
	for _, input := range s.server.carryOut(request, s.state.Forest()) {
		words = append(words, s.apply(input)...)
	}
	return words
}

// pass lets time pass, and queues the keys whose time has come.
func (s *scenario) pass(d time.Duration) {
	s.now = s.now.Add(d)
	for _, key := range slices.SortedFunc(maps.Keys(s.timers), compareKeys) {
		if !s.timers[key].After(s.now) {
			delete(s.timers, key)
			s.keep(copyengine.Queue{Keys: []copyengine.Key{key}})
		}
	}
}

// deliver applies the oldest event that the State has not been shown.
func (s *scenario) deliver() []string {
	event := s.server.events[0]
	s.server.events = s.server.events[1:]
	return s.apply(event)
}

// settle works everything off, in the order in which it came, for five minutes of the scenario's clock. It needs an end, because the State
// looks at some things again and again, such as an obstacle that no watch shows.
func (s *scenario) settle() {
	s.Helper()
	end := s.now.Add(5 * time.Minute)
	for range limit {
		switch {
		case len(s.requests) > 0:
			s.answerNth(0)
		case len(s.queue) > 0:
			s.start(s.queue[0])
		case len(s.server.events) > 0:
			s.deliver()
		case !s.wake(end):
			return
		}
	}
	s.fail("the work does not end: %d keys wait, %d timers", len(s.queue), len(s.timers))
}

// wake lets time pass until the next timer, if that is due before end.
func (s *scenario) wake(end time.Time) bool {
	at := end
	for _, due := range s.timers {
		if due.Before(at) {
			at = due
		}
	}
	if at.Equal(end) {
		return false
	}
	s.pass(max(0, at.Sub(s.now)))
	return true
}

// requireSettled queues every namespace and every source again, and fails the test if that leads to a request, except a probe of an
// obstacle.
func (s *scenario) requireSettled() {
	s.Helper()
	for name := range s.state.Forest().All() {
		s.keep(copyengine.Queue{Keys: []copyengine.Key{namespaceTask(name)}})
	}
	for slot := range s.server.objects {
		s.keep(copyengine.Queue{Keys: []copyengine.Key{sourceTask(slot)}})
	}
	for range limit {
		if len(s.queue) == 0 {
			return
		}
		key := s.queue[0]
		words := s.start(key)
		if len(s.requests) == 1 && strings.HasPrefix(words[len(words)-1], "probe") {
			s.answerNth(0) // an obstacle that no watch shows is probed again
		}
		if len(s.requests) > 0 {
			s.fail("everything was done, and %s leads to %v", describeKey(key), words)
		}
	}
	s.fail("the work does not end: %d keys wait, %d timers", len(s.queue), len(s.timers))
}

// moved replaces the forest on the API server by next, and returns the Input that shows this to the State.
func (s *scenario) moved(next *forest.Snapshot, namespaces ...string) copyengine.Input {
	s.server.grow(next, namespaces...)
	last := len(s.server.events) - 1
	event := s.server.events[last]
	s.server.events = s.server.events[:last]
	return event
}

func compareKeys(a, b copyengine.Key) int { return cmp.Compare(describeKey(a), describeKey(b)) }

func namespaceTask(namespace string) copyengine.Key {
	return copyengine.Key{Task: copyengine.LookAtNamespace, Slot: copies.Slot{Namespace: namespace}}
}

func sourceTask(slot copies.Slot) copyengine.Key {
	return copyengine.Key{Task: copyengine.LookAtSource, Slot: slot}
}

func slotTask(slot copies.Slot) copyengine.Key {
	return copyengine.Key{Task: copyengine.WriteSlot, Slot: slot}
}

// step is one Input of a table test, and the Outputs that it leads to, in words.
type step struct {
	do   func(*scenario) []string
	want []string
}

// run applies the steps one after the other.
func (s *scenario) run(steps ...step) {
	s.Helper()
	for i, step := range steps {
		got := step.do(s)
		slices.Sort(got)
		slices.Sort(step.want)
		if diff := gocmp.Diff(step.want, got, cmpopts.EquateEmpty()); diff != "" {
			s.Fatalf("step %d (-want +got):\n%s", i+1, diff)
		}
	}
}

// The functions below return steps. The first parameters of each are its subject, the others the Outputs that are expected.

// startedSlot has a worker take the key of a slot.
func startedSlot(slot copies.Slot, want ...string) step {
	return step{func(s *scenario) []string { return s.start(slotTask(slot)) }, want}
}

// startedSource has a worker take the key of a source.
func startedSource(slot copies.Slot, want ...string) step {
	return step{func(s *scenario) []string { return s.start(sourceTask(slot)) }, want}
}

// startedNamespace has a worker take the key of a namespace.
func startedNamespace(namespace string, want ...string) step {
	return step{func(s *scenario) []string { return s.start(namespaceTask(namespace)) }, want}
}

// answered carries out the request for a slot on the API server.
func answered(slot copies.Slot, want ...string) step {
	return step{func(s *scenario) []string { return s.answer(slot) }, want}
}

// refused answers the request for a slot with an error, without carrying it out.
func refused(slot copies.Slot, err error, want ...string) step {
	return step{func(s *scenario) []string {
		i := slices.IndexFunc(s.requests, func(request copyengine.Request) bool { return requestedSlot(request) == slot })
		if i < 0 {
			return []string{"no request"}
		}
		request := s.requests[i]
		s.requests = slices.Delete(s.requests, i, i+1)
		switch one := request.(type) {
		case copyengine.ReadSource:
			return s.apply(copyengine.SourceRead{Source: one.Source, Err: err})
		case copyengine.FindLoss:
			return s.apply(copyengine.LossFound{Source: one.Source, Err: err})
		case copyengine.CheckRemoval:
			return s.apply(copyengine.RemovalChecked{CheckRemoval: one, Err: err})
		default:
			return s.apply(copyengine.CopyWritten{WriteCopy: one.(copyengine.WriteCopy), Err: err})
		}
	}, want}
}

// shown delivers everything that the watches have not shown yet.
func shown(want ...string) step {
	return step{func(s *scenario) (words []string) {
		for len(s.server.events) > 0 {
			words = append(words, s.deliver()...)
		}
		return words
	}, want}
}

// done changes the API server. The watches show this later.
func done(change func(*apiServer)) step {
	return step{func(s *scenario) []string { change(s.server); return nil }, nil}
}

// grown replaces the forest by next, and shows this to the State. The change concerns these namespaces.
func grown(next *forest.Snapshot, namespaces []string, want ...string) step {
	return step{func(s *scenario) []string { return s.apply(s.moved(next, namespaces...)) }, want}
}

// passed lets time pass. That causes no Outputs; waiting are the keys that wait in the queue afterwards, because their time has come.
func passed(d time.Duration, waiting ...string) step {
	return step{func(s *scenario) (words []string) {
		s.pass(d)
		for _, key := range s.queue {
			words = append(words, describeKey(key))
		}
		return words
	}, waiting}
}

// ticked applies a Ticked.
func ticked(idle bool, want ...string) step {
	return step{func(s *scenario) []string { return s.apply(copyengine.Ticked{Idle: idle}) }, want}
}

// applied applies any other Input.
func applied(input copyengine.Input, want ...string) step {
	return step{func(s *scenario) []string { return s.apply(input) }, want}
}

// settled works everything off.
func settled() step {
	return step{func(s *scenario) []string { s.settle(); return nil }, nil}
}

// troubled checks what the State reports on a namespace.
func troubled(namespace string, want ...string) step {
	return step{func(s *scenario) (words []string) {
		for _, trouble := range s.state.Troubles(slices.Values([]string{namespace})) {
			words = append(words, fmt.Sprintf("%s %s from %s: %s", trouble.Reason, trouble.Slot, trouble.From, trouble.Text))
		}
		return words
	}, want}
}
