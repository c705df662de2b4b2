package propagation

import (
	"fmt"
	"testing"

	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/propagate"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

func TestLargeSources(t *testing.T) {
	t.Run("PROP-Q6 are read once for many copies", testLargeSources)
}

// testLargeSources works off the copies of twenty Secrets of a MiB in 300 namespaces, and counts how often a body is not kept.
func testLargeSources(t *testing.T) {
	const children, sources, size = 300, 20, 1 << 20
	f := forest.New(forest.Rules{}).WithNamespace(&forest.Namespace{Name: "acme", UID: "acme", Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}})
	for i := range children {
		name := fmt.Sprint("c", i)
		f = f.WithNamespace(&forest.Namespace{Name: name, UID: name, Labels: map[string]string{v1alpha1.LabelParent: "acme"}})
	}
	kept := newBodies()
	tb := newTables(f, propagate.Rules{}, kept)
	tb.setKind(secretKind.GroupKind(), propagate.OptIn, true)
	q := newQueue(facts{tb})
	q.Lead()
	for i := range sources {
		from := propagate.Slot{Kind: secretKind.GroupKind(), Namespace: "acme", Name: fmt.Sprint("s", i)}
		tb.in.world.PutSource(from, &propagate.Source{UID: from.Name, Mode: v1alpha1.ModeUpdate, Content: from.Name, Size: size})
		q.Add(slotKeys(facts{tb}.slotsOf(from))...)
	}
	reads := 0
	for range children * sources {
		q.WorkOne(func(k key) (inVain bool) {
			from := k.slot.At("acme")
			if _, ok := kept.get(from, from.Name); !ok {
				reads++
				kept.put(from, body{Body: &propagate.Body{Content: from.Name, Size: size}})
			}
			return false
		})
	}
	t.Logf("%d reads for %d copies", reads, children*sources)
	if most := children * sources / 10; reads > most {
		t.Errorf("bodies were read %d times for %d copies, want at most %d", reads, children*sources, most)
	}
}
