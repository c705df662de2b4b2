package copies

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/internal/fairqueue"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

func TestLargeSources(t *testing.T) {
	t.Run("PROP-Q6 twenty Secrets of 1 MiB that are copied in turns to 300 namespaces "+
		"are read at most once for every ten copies", testLargeSources)
}

// testLargeSources works off the copies of twenty Secrets of 1 MiB each in 300 namespaces. It counts how often the content of a source was
// no longer in memory and must be read again.
func testLargeSources(t *testing.T) {
	const children, count, size = 300, 20, 1 << 20
	f := forest.New(forest.Rules{}).WithNamespace(&forest.Namespace{Name: "acme", UID: "acme",
		Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}})
	for i := range children {
		name := fmt.Sprint("c", i)
		f = f.WithNamespace(&forest.Namespace{Name: name, UID: name, Labels: map[string]string{v1alpha1.LabelParent: "acme"}})
	}
	state := copyengine.NewState(f, copyengine.Settings{Kinds: []copyengine.Kind{{GroupVersionKind: secretKind, Mode: copies.All}},
		Timing: copyengine.DefaultTiming()})
	watch := copyengine.Watch{Kind: secretKind.GroupKind(), Role: copyengine.SourcesAndCopies}
	queue := fairqueue.New(state.TurnOf, clock.RealClock{})
	queue.Lead()
	var apply func(copyengine.Input) copyengine.Request
	apply = func(input copyengine.Input) copyengine.Request {
		for _, output := range state.Apply(time.Now(), input) {
			if q, is := output.(copyengine.Queue); is {
				for _, key := range q.Keys {
					switch {
					case key.Task == copyengine.SpreadSource:
						apply(copyengine.Started{Key: key})
					case key.Task == copyengine.WriteSlot && key.Slot.Namespace != "acme":
						queue.Add(key)
					}
				}
			}
		}
		return nil
	}
	kept := newSources(nil, copies.Rules{}, apply)
	var all []*metav1.PartialObjectMetadata
	for i := range count {
		name := fmt.Sprint("s", i)
		all = append(all, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: name, UID: types.UID(name),
			ResourceVersion: "1"}})
	}
	apply(copyengine.Listed{Watch: watch, ResourceVersion: "1", Objects: all})
	apply(copyengine.WatchChanged{Watch: watch, Status: watchset.Status{State: watchset.Synced, Kind: secretKind,
		Resource: secretKind.GroupVersion().WithResource("secrets")}})
	for _, object := range all {
		from := copies.Slot{Kind: secretKind.GroupKind(), Namespace: "acme", Name: object.Name}
		apply(copyengine.BodyRead{Source: from, Resource: secretKind.GroupVersion().WithResource("secrets"), UID: object.Name,
			ResourceVersion: "1", Body: &copies.Body{Content: object.Name, Size: size}})
		apply(copyengine.SourceRead{Source: from})
	}
	if queue.Len() != children*count {
		t.Fatalf("%d keys wait", queue.Len())
	}
	reads := 0
	for range children * count {
		queue.WorkOne(func(key copyengine.Key) (inVain bool) {
			from := key.Slot.At("acme")
			if kept.findBody(from, from.Name) == nil {
				reads++
				kept.keepBody(from, &copies.Body{Content: from.Name, Size: size})
			}
			return false
		})
	}
	t.Logf("%d reads for %d copies", reads, children*count)
	if most := children * count / 10; reads > most {
		t.Errorf("bodies were read %d times for %d copies, want at most %d", reads, children*count, most)
	}
}
