package copyengine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
)

// BenchmarkPlanLarge measures what one Input takes under the runner's lock with 100,000 copies: 100 sources in each of 1,000 namespaces.
// The budget for a plan and for a Started is 50 µs at p99.
func BenchmarkPlanLarge(b *testing.B) {
	const namespaces, sources = 1000, 100
	s, slots := large(b, namespaces, sources)
	one := func(i int) copies.Slot { return slots[i*7919%len(slots)] }
	b.Run("Plan", func(b *testing.B) {
		s.state.Read(func(w *copies.World) { quantiles(b, func(i int) { w.Plan(one(i)) }) })
	})
	for name, input := range map[string]func(i int) copyengine.Input{
		"Started/WriteSlot":       func(i int) copyengine.Input { return copyengine.Started{Key: slotTask(one(i))} },
		"Started/LookAtNamespace": func(i int) copyengine.Input { return copyengine.Started{Key: namespaceTask(one(i).Namespace)} },
		"Started/LookAtSource":    func(i int) copyengine.Input { return copyengine.Started{Key: sourceTask(one(i).At("acme"))} },
		"Started/SpreadSource": func(i int) copyengine.Input { // as many steps as one LookAtSource leads to
			task := copyengine.SpreadSource
			if i%(namespaces/32) == 0 {
				task = copyengine.LookAtSource
			}
			return copyengine.Started{Key: copyengine.Key{Task: task, Slot: slots[i/(namespaces/32)*7919%len(slots)].At("acme")}}
		},
		"RightsAsked": func(i int) copyengine.Input { return copyengine.RightsAsked{Namespace: one(i).Namespace} },
		"Ticked":      func(int) copyengine.Input { return copyengine.Ticked{} },
	} {
		b.Run(name, func(b *testing.B) { quantiles(b, func(i int) { s.state.Apply(s.now, input(i)) }) })
	}
	b.Run("TurnOf", func(b *testing.B) { quantiles(b, func(i int) { s.state.TurnOf(slotTask(one(i))) }) })
}

// quantiles reports how long the calls of do take, at p50 and p99.
func quantiles(b *testing.B, do func(i int)) {
	b.ReportAllocs()
	took := make([]time.Duration, 0, 1<<20)
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		do(i)
		if len(took) < cap(took) {
			took = append(took, time.Since(began))
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1000, "p99-µs")
}

// large returns a scenario with a root that has as many children and sources as asked for. Each child has a copy of each source. It also
// returns the slots of the copies.
func large(b *testing.B, namespaces, sources int) (*scenario, []copies.Slot) {
	names := []string{"acme root"}
	for i := range namespaces {
		names = append(names, fmt.Sprintf("c%04d in acme", i))
	}
	s := newScenario(b, planted(names...), scenarioKinds()...)
	var slots []copies.Slot
	for j := range sources {
		from := in("acme", secret, fmt.Sprint("s", j))
		propagated(from, 1, update)(s.server)
		for i := range namespaces {
			slot := from.At(fmt.Sprintf("c%04d", i))
			hash := copies.Hash{Mode: update, Place: copies.PlaceOf(slot, "acme"), Content: contentNumber(1)}
			meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Namespace: slot.Namespace, Name: slot.Name, UID: types.UID(slot.String()), ResourceVersion: "1",
				Labels:      map[string]string{v1alpha1.LabelInheritedFrom: "acme"},
				Annotations: map[string]string{v1alpha1.AnnotationSourceHash: hash.String()},
			}}
			s.server.objects[slot] = apiObject{meta, contentNumber(1), 100}
			slots = append(slots, slot)
		}
	}
	s.server.events = nil
	for _, kind := range s.server.kinds {
		for _, role := range kind.Roles() { // s.list would also store 100,000 keys
			watch := copyengine.Watch{Kind: kind.GroupKind(), Role: role}
			s.state.Apply(s.now, copyengine.Listed{Watch: watch, ResourceVersion: fmt.Sprint(s.server.version), Objects: s.server.list(watch)})
			s.state.Apply(s.now, copyengine.WatchChanged{Watch: watch, Status: syncedStatus(kind.GroupVersionKind)})
		}
	}
	s.state.Apply(s.now, copyengine.Elected{})
	for j := range sources {
		for _, input := range append(first(s.server.read(in("acme", secret, fmt.Sprint("s", j)), syncedStatus(secretKind).Resource)),
			copyengine.SourceRead{Source: in("acme", secret, fmt.Sprint("s", j))}) {
			s.state.Apply(s.now, input)
		}
	}
	return s, slots
}

func first(inputs []copyengine.Input, _ error) []copyengine.Input { return inputs }
