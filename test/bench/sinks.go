package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/pkg/watchset"
	"github.com/warren-tenancy/warren/test/build"
)

// Two ways to pass the metadata of Secrets on to a receiver that keeps only what it needs of them.
const (
	setIntoSink       = "watchset, sink"
	reflectorIntoSink = "client-go's reflector"
)

// sinkBudget is the largest quotient that is allowed: the cost of an informer of a watch set with a Sink, divided by that of a plain
// reflector.
const sinkBudget = 1.15

// ledger keeps the resourceVersions of objects, in place of the objects.
type ledger struct {
	mu       sync.Mutex
	versions map[types.NamespacedName]string
	synced   bool
	changes  int
}

func (l *ledger) fill(n int, each func(put func(metav1.Object))) {
	versions := make(map[types.NamespacedName]string, n)
	each(func(object metav1.Object) { versions[nameOf(object)] = strings.Clone(object.GetResourceVersion()) })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.versions, l.synced = versions, true
}

func (l *ledger) put(object metav1.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.versions[nameOf(object)] = strings.Clone(object.GetResourceVersion())
	l.changes++
}

func (l *ledger) drop(object metav1.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.versions, nameOf(object))
	l.changes++
}

func nameOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: strings.Clone(object.GetNamespace()), Name: strings.Clone(object.GetName())}
}

// count returns how many objects are kept, none before the first list is complete.
func (l *ledger) count(context.Context) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.synced {
		return 0, nil
	}
	return len(l.versions), nil
}

func (l *ledger) countChanges() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changes
}

// setLedger makes a ledger a watchset.Sink, and storeLedger makes it the store of a reflector.
type (
	setLedger   struct{ *ledger }
	storeLedger struct{ *ledger }
)

func (l setLedger) Put(object client.Object)      { l.put(object) }
func (l setLedger) Gone(object client.Object)     { l.drop(object) }
func (l setLedger) State(string, watchset.Status) {}
func (l setLedger) Replace(_, _ string, all []client.Object) {
	l.fill(len(all), func(put func(metav1.Object)) {
		for _, object := range all {
			put(object)
		}
	})
}

func (l storeLedger) Add(object any) error    { l.put(object.(metav1.Object)); return nil }
func (l storeLedger) Update(object any) error { return l.Add(object) }
func (l storeLedger) Delete(object any) error { l.drop(object.(metav1.Object)); return nil }
func (l storeLedger) Resync() error           { return nil }
func (l storeLedger) Replace(all []any, _ string) error {
	l.fill(len(all), func(put func(metav1.Object)) {
		for _, object := range all {
			put(object.(metav1.Object))
		}
	})
	return nil
}

// openSink passes the objects that the holding selects on to a ledger, by an informer of a watch set.
func (h holding) openSink(ctx context.Context, cfg *rest.Config, into *ledger) error {
	set, err := watchset.New(cfg, watchset.Options{WatchRBAC: watchset.WhileForbidden})
	if err != nil {
		return err
	}
	go func() { _ = set.Start(ctx) }()
	request := watchset.Request{Kind: corev1.SchemeGroupVersion.WithKind("Secret"), Sink: setLedger{into}}
	if request.LabelSelector, err = labels.Parse(h.Selector); err != nil {
		return err
	}
	_, err = set.Acquire(watchset.Static("bench"), request)
	return err
}

// openReflector passes the selected objects on to a ledger, by a reflector.
func (h holding) openReflector(ctx context.Context, cfg *rest.Config, into *ledger) error {
	c, err := metadata.NewForConfig(cfg)
	if err != nil {
		return err
	}
	secrets := c.Resource(corev1.SchemeGroupVersion.WithResource("secrets"))
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = h.Selector
			return secrets.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = h.Selector
			return secrets.Watch(ctx, o)
		},
	}, c)
	go cache.NewReflectorWithOptions(lw, &metav1.PartialObjectMetadata{}, storeLedger{into}, cache.ReflectorOptions{Name: "secrets"}).
		RunWithContext(ctx)
	return nil
}

// awaitChanges writes to out that all objects are there, waits until each has changed, and returns the CPU time of that.
func (h holding) awaitChanges(ctx context.Context, into *ledger, out io.Writer) (spent float64, err error) {
	before, err := readCPUTime(os.Getpid())
	if err != nil {
		return 0, err
	}
	if err := json.NewEncoder(out).Encode(cost{}); err != nil {
		return 0, err
	}
	err = waitFor(ctx, fmt.Sprintf("%d changes", h.Changes), func(context.Context) (bool, error) {
		return into.countChanges() >= h.Changes,
			nil
	})
	if err != nil {
		return 0, err
	}
	after, err := readCPUTime(os.Getpid())
	return after - before, err
}

// compareSinks measures INF-I90: what it costs to pass copies on, by a watch set and by a plain reflector, in turns.
func (b informersBench) compareSinks(ctx context.Context) ([]result, error) {
	const namespace = "bench-sinks"
	copies, turns := 10000, 3
	if b.scale.small {
		copies = 300
	}
	if err := b.Admin().Create(ctx, build.Namespace(namespace)); err != nil {
		return nil, err
	}
	name := func(i int) string { return fmt.Sprintf("copy-%d", i) }
	err := inParallel(ctx, copies, func(ctx context.Context, i int) error {
		s := newSecret(name(i), "a")
		s.Namespace, s.Labels = namespace, map[string]string{"bench": "passed"}
		return b.Admin().Create(ctx, s)
	})
	if err != nil {
		return nil, err
	}
	round := 0
	change := func(ctx context.Context) error {
		round++
		return inParallel(ctx, copies, func(ctx context.Context, i int) error {
			s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name(i)}}
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"bench":"`+fmt.Sprint(round)+`"}}}`))
			return b.Admin().Patch(ctx, s, patch)
		})
	}
	sum := map[string]cost{}
	var results []result
	for ; turns > 0; turns-- {
		for _, how := range []string{reflectorIntoSink, setIntoSink} {
			h := holding{Access: b.Access, User: operatorUser, How: how, Selector: "bench=passed", Objects: copies, Changes: copies}
			c, err := h.measureDuring(ctx, change)
			if err != nil {
				return nil, fmt.Errorf("%s of %d copies: %w", how, copies, err)
			}
			sum[how] = sum[how].plus(c)
			results = append(results, result{id: "INF-I90", passed: true, told: true, text: fmt.Sprintf(
				"%5d copies, %-22s watches %d, other requests %d, CPU %.2fs until synced and %.2fs for a change of each, resident %.1f MiB, at most "+
					"%.1f MiB",
				copies, how, c.Watches, c.Requests, c.Started, c.Changed, c.Resident/mebibyte, c.Peak/mebibyte)})
		}
	}
	set, plain := sum[setIntoSink], sum[reflectorIntoSink]
	start, events, resident, peak := set.Started/plain.Started, set.Changed/plain.Changed, set.Resident/plain.Resident, set.Peak/plain.Peak
	return append(results, result{
		id: "INF-I90", passed: max(start, events, resident, peak) <= sinkBudget || b.scale.small,
		text: fmt.Sprintf("watchset with a Sink, in times of a plain reflector: CPU until synced %.2f, for changes %.2f, resident %.2f, at "+
			"most %.2f; budget %.2f",
			start, events, resident, peak, sinkBudget),
	}), nil
}

func (c cost) plus(d cost) cost {
	return cost{Started: c.Started + d.Started, Changed: c.Changed + d.Changed, Resident: c.Resident + d.Resident, Peak: c.Peak + d.Peak}
}
