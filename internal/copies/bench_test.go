package copies_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/warren-tenancy/warren/internal/copies"
)

// fanOut returns a root with 300 children and ten sources, of each of which every child has a copy, and the slots of the copies.
func fanOut() (w *copies.World, slots []copies.Slot) {
	namespaces := []string{"acme root"}
	for i := range 300 {
		namespaces = append(namespaces, fmt.Sprintf("c%03d in acme", i))
	}
	w = world(planted(namespaces...))
	for i := range 10 {
		from := in("acme", secret, fmt.Sprint("s", i))
		w.PutSource(from, &copies.Source{Mode: update, Content: content("acme", 1), Meta: 7})
		for j := range 300 {
			slot := from.At(fmt.Sprintf("c%03d", j))
			copiedTo(slot, "acme", update)(w)
			slots = append(slots, slot)
		}
	}
	return w, slots
}

func BenchmarkPlan(b *testing.B) {
	run := func(w *copies.World, slots []copies.Slot, want copies.Verb) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if got := w.Plan(slots[i%len(slots)]); got.Verb != want {
					b.Fatalf("plan is %v", got)
				}
			}
		}
	}
	w, slots := fanOut()
	b.Run("settled", run(w, slots, copies.Nothing))
	for i := range 10 {
		w.Sources.At(in("acme", secret, fmt.Sprint("s", i))).Content = content("acme", 2)
	}
	b.Run("update", run(w, slots, copies.Update))
	for i := range 10 {
		w.Sources.At(in("acme", secret, fmt.Sprint("s", i))).
			Selector = labels.SelectorFromSet(labels.Set{"acme.tree.tenancy.warren.dev/depth": "1"})
	}
	b.Run("selector", run(w, slots, copies.Update))
}

func BenchmarkSlotsIn(b *testing.B) {
	w, _ := fanOut()
	b.ReportAllocs()
	for b.Loop() {
		w.SlotsIn("c150")
	}
}

func BenchmarkJSON(b *testing.B) {
	o := object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s", "namespace": "acme"},
		"data": object{"k": string(make([]byte, 1024))}}
	body, err := copies.Render(at("acme"), o, copies.Rules{})
	if err != nil {
		b.Fatal(err)
	}
	hash := copies.Hash{Mode: update, Place: copies.PlaceOf(at("a"), "acme"), Content: body.Content}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := body.JSON(at("a"), "acme", hash, nil); err != nil {
			b.Fatal(err)
		}
	}
}
