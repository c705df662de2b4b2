package informers_test

import (
	"context"
	"os"
	"runtime"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/pkg/watchset"
)

// listed counts the objects of the first list, and keeps none of them. It is the store of a reflector.
type listed struct{ n chan int }

func (l listed) Add(any) error    { return nil }
func (l listed) Update(any) error { return nil }
func (l listed) Delete(any) error { return nil }
func (l listed) Resync() error    { return nil }
func (l listed) Replace(all []any, _ string) error {
	l.n <- len(all)
	return nil
}

// sunk does the same as listed, as a Sink.
type sunk struct{ n chan int }

func (s *sunk) Put(client.Object)                        {}
func (s *sunk) Gone(client.Object)                       {}
func (s *sunk) State(string, watchset.Status)            {}
func (s *sunk) Replace(_, _ string, all []client.Object) { s.n <- len(all) }

var _ = Describe("objects that are passed on", func() {
	// `make bench-informers` does the same with 10,000 objects, and measures CPU time.
	It("INF-I90 copies that are passed to a Sink cost at most 1.15 of a plain reflector's bytes, 1 watch and no list (`make "+
		"bench-informers`: also CPU and peak)", func(ctx SpecContext) {
		const copies, rounds, label = 600, 5, "op90-copy"
		w := prepare(90, blind())
		w.grantAll(ctx, "see", rule(secrets, see))
		plantLabelled(ctx, w.namespaces(ctx, "a")[0], label, copies)
		w.run()
		plain, err := metadata.NewForConfig(w.config)
		Expect(err).NotTo(HaveOccurred())

		bySet := func() {
			all := make(chan int, 1)
			l := w.lease(watchset.Request{Kind: corev1.SchemeGroupVersion.WithKind("Secret"), LabelSelector: labelled(label), Sink: &sunk{all}})
			Eventually(all).Should(Receive(Equal(copies)))
			l.Release()
		}
		byReflector := func() {
			lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
				ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (apiruntime.Object, error) {
					o.LabelSelector = label
					return plain.Resource(secrets).List(ctx, o)
				},
				WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
					o.LabelSelector = label
					return plain.Resource(secrets).Watch(ctx, o)
				},
			}, plain)
			running, stop := context.WithCancel(ctx)
			all := make(chan int, 1)
			go cache.NewReflectorWithOptions(lw, &metav1.PartialObjectMetadata{}, listed{all}, cache.ReflectorOptions{}).RunWithContext(running)
			Eventually(all).Should(Receive(Equal(copies)))
			stop()
		}
		least := map[string]uint64{}
		for range rounds {
			for how, pass := range map[string]func(){"reflector": byReflector, "set": bySet} {
				if n := allocated(pass); least[how] == 0 || n < least[how] {
					least[how] = n
				}
			}
		}
		Expect(w.count("list", secrets.Resource, "")).To(BeZero())
		Expect(w.count("watch", secrets.Resource, "")).To(Equal(2 * rounds))
		ratio := float64(least["set"]) / float64(least["reflector"])
		AddReportEntry("bytes allocated, in times of the reflector's", ratio)
		if os.Getenv("WARREN_RACE") != "1" { // the race detector needs memory of its own
			Expect(ratio).To(BeNumerically("<=", 1.15))
		}
	})
})

// allocated returns how many bytes the process allocates while f runs.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
