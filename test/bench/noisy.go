package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
)

const (
	// noisyBudget is the largest quotient that is allowed: the time from a tenant's Secret to its copy while another tenant floods, divided by
	// that at rest.
	noisyBudget = 2.0
	// noisyRequests is the largest number of requests a second that the operator may send to the API server after it has dealt with a flood.
	noisyRequests = 50.0
)

// probes returns how many requests of the quiet tenant are timed.
func (s scale) probes() int {
	if s.small {
		return 10
	}
	return 40
}

// runNoisy measures what each way of flooding the operator costs other tenants. It times a probe at rest, and right after that during the
// flood. A probe is a request of a quiet tenant, such as a Secret that is to be copied. It also counts the operator's requests after it
// has dealt with the flood. The figures of each flood are printed at once. The parameter called only lists the numbers of the floods,
// from 1; if it is empty, all are measured.
func runNoisy(ctx context.Context, s scale, only string) (bool, error) {
	chosen, err := chooseFloods(only)
	if err != nil {
		return false, err
	}
	ok := true
	p := part{webhooks: true, measure: func(ctx context.Context, b *bench) ([]result, error) {
		if err := b.startOperator(ctx); err != nil {
			return nil, err
		}
		if err := b.plantTree(ctx, 1); err != nil {
			return nil, err
		}
		for i, f := range chosen {
			f.bench, f.root = b, fmt.Sprintf("noise-%d", i)
			if f.probe.ask == nil {
				f.probe = copied
			}
			results, err := f.measure(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.name, err)
			}
			for _, r := range results {
				ok = s.tell(r) && ok
			}
		}
		return nil, nil
	}}
	_, err = p.on(ctx, s)
	return ok, err
}

// chooseFloods returns the floods whose numbers are in the list only, or all floods if it is empty.
func chooseFloods(only string) ([]*flood, error) {
	all := floods()
	if only == "" {
		return all, nil
	}
	var chosen []*flood
	for number := range strings.SplitSeq(only, ",") {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > len(all) {
			return nil, fmt.Errorf("-noisy -only %s: %q is no flood; they are numbered from 1 to %d", only, number, len(all))
		}
		chosen = append(chosen, all[n-1])
	}
	return chosen, nil
}

// flood is one way in which a tenant may flood the operator.
type flood struct {
	name string
	// prepare makes the tree of the tenant that floods, before the probes are timed at rest.
	prepare func(ctx context.Context, f *flood) error
	// begin, if it is not nil, makes the objects that flood the operator.
	begin func(ctx context.Context, f *flood) error
	// goOn, if it is not nil, is called five times a second while the probes are timed; n counts the calls.
	goOn func(ctx context.Context, f *flood, n int) error
	// brief means that goOn is no longer called while the operator's requests are counted, because each call causes very many.
	brief bool
	// end, if it is not nil, removes what would disturb the next flood, but for the Secrets in the root: clear deletes those.
	end func(ctx context.Context, f *flood) error
	// probe is what is timed for the quiet tenant; the default is the time from a Secret to its copy.
	probe probe

	*bench
	root string
}

// child is the name of a namespace below the root of a flood.
func (f *flood) child(i int) string { return fmt.Sprintf("%s-%05d", f.root, i) }

// measure times the probes at rest and then during the flood, and counts the operator's requests during the flood and after it.
func (f *flood) measure(ctx context.Context) ([]result, error) {
	if err := f.prepare(ctx, f); err != nil {
		return nil, err
	}
	if err := f.waitForIdle(ctx); err != nil {
		return nil, err
	}
	rest, err := f.timeOthers(ctx, f.root+"-rest")
	if err != nil {
		return nil, err
	}
	mark, err := f.Mark(ctx)
	if err != nil {
		return nil, err
	}
	if f.begin != nil {
		if err := f.begin(ctx, f); err != nil {
			return nil, err
		}
	}
	going, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- f.keepOn(going) }()
	noisy, err := f.timeOthers(ctx, f.root+"-flood")
	if err != nil {
		return nil, err
	}
	causes, err := f.sumUpRequests(ctx, mark)
	if err != nil {
		return nil, err
	}
	if f.brief {
		stop()
	}
	asked, err := f.countSteadyRequests(ctx)
	if err != nil {
		return nil, err
	}
	stop()
	if err := <-ended; err != nil {
		return nil, err
	}
	ratio := float64(medianOf(noisy.settled)) / float64(medianOf(rest.settled))
	return []result{
		{id: "N1", passed: ratio <= noisyBudget, text: fmt.Sprintf("%s: another tenant's %s p50 %.0fms max %.0fms, at rest p50 %.0fms max "+
			"%.0fms, ratio %.2f budget %.1f; the object itself was written in %.0fms, at rest in %.0fms; meanwhile the operator sent %s",
			f.name, f.probe.name, ms(medianOf(noisy.settled)), ms(slices.Max(noisy.settled)), ms(medianOf(rest.settled)),
			ms(slices.Max(rest.settled)), ratio, noisyBudget,
			ms(medianOf(noisy.written)), ms(medianOf(rest.written)), causes)},
		{id: "N2", passed: asked <= noisyRequests, counted: true,
			text: fmt.Sprintf("%s: %.1f requests of the operator a second afterwards, budget %.0f", f.name, asked, noisyRequests)},
	}, f.clear(ctx)
}

// sumUpRequests returns what the operator has asked for since then, by verb and resource, most first, such as "1000 create secrets, 40 get
// secrets".
func (f *flood) sumUpRequests(ctx context.Context, since audit.Position) (string, error) {
	requests, err := f.operatorRequests(ctx, since)
	if err != nil {
		return "", err
	}
	counts := map[string]int{}
	for _, r := range requests {
		counts[r.Verb+" "+strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/")]++
	}
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", counts[kind], kind)
	}
	return strings.Join(kinds, ", "), nil
}

// keepOn calls goOn five times a second, until ctx is done.
func (f *flood) keepOn(ctx context.Context) error {
	if f.goOn == nil {
		return nil
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := f.goOn(ctx, f, n); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// countSteadyRequests counts the operator's requests again and again, until they are within noisyRequests, or for five minutes. What the
// last count finds is what the flood costs for good.
func (f *flood) countSteadyRequests(ctx context.Context) (asked float64, err error) {
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); {
		if asked, err = f.countRequests(ctx); err != nil || asked <= noisyRequests {
			break
		}
	}
	return asked, err
}

// countRequests returns how many requests a second the operator sends, measured over 50 s (3 s in a small run). In 50 s the operator looks
// again at every obstacle: the pause between two looks at one obstacle grows to at most 45 s.
func (f *flood) countRequests(ctx context.Context) (float64, error) {
	window := 50 * time.Second
	if f.scale.small {
		window = 3 * time.Second
	}
	mark, err := f.Mark(ctx)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	select {
	case <-time.After(window):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	requests, err := f.operatorRequests(ctx, mark)
	return float64(len(requests)) / time.Since(begin).Seconds(), err
}

// operatorRequests returns what the operator has asked for since then, without the renewal of its Lease.
func (f *flood) operatorRequests(ctx context.Context, since audit.Position) ([]audit.Request, error) {
	requests, err := f.Requests(ctx, since)
	return slices.DeleteFunc(requests, func(r audit.Request) bool { return r.User != operatorUser || r.Resource == "leases" }), err
}

// clear takes away what flooded, so that the next flood is measured alone.
func (f *flood) clear(ctx context.Context) error {
	if f.end != nil {
		if err := f.end(ctx, f); err != nil {
			return err
		}
	}
	sources := &metav1.PartialObjectMetadata{}
	sources.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
	if err := f.Admin().DeleteAllOf(ctx, sources, client.InNamespace(f.root)); err != nil {
		return err
	}
	return f.waitForIdle(ctx)
}

// size returns n, or a tenth of it in a small run.
func (f *flood) size(n int) int {
	if f.scale.small {
		return max(1, n/10)
	}
	return n
}

// inEach calls do for every object in every child; children and objects are their numbers.
func (f *flood) inEach(ctx context.Context, children, objects int, do func(ctx context.Context, namespace string, i int) error) error {
	return inParallel(ctx, children*objects, func(ctx context.Context, i int) error { return do(ctx, f.child(i/objects), i%objects) })
}

// putSources makes sources in the root of a flood, each with that content; count is their number.
func (f *flood) putSources(ctx context.Context, count int, content string, annotations ...string) error {
	return inParallel(ctx, count, func(ctx context.Context, i int) error {
		secret := build.Annotated(build.Secret(f.root, fmt.Sprintf("flood-%d", i), content), annotations...)
		return f.Admin().Create(ctx, build.Source(secret, v1alpha1.ModeUpdate))
	})
}

// longSelector returns a selector that matches nothing, and is nearly as long as a source's selector may be.
func longSelector() string {
	terms := make([]string, 0, 200)
	for i := range 200 {
		terms = append(terms, fmt.Sprintf("tier-%03d!=none", i))
	}
	return strings.Join(append(terms, "nobody=has"), ",")
}
