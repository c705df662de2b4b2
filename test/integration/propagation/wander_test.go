package propagation_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/pkg/watchset"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
)

// wander takes the operator's rights away and gives them back at random. Meanwhile sources are made, changed and deleted, copies are
// lost, and a namespace moves. It knows which copies would exist with all rights.
type wander struct {
	*family
	random *rand.Rand
	// rights are the namespaces where the operator may see Secrets, everywhere is the whole cluster.
	rights     map[string]bool
	everywhere bool
	auto       bool
	parents    map[string]string
	// sources are the values of what is propagated, by namespace and name.
	sources map[client.ObjectKey]string
	value   int
	log     []string
}

// wanderSteps is the number of steps, and of those between two checks: few, so that each check finds something to settle.
func wanderSteps() (steps, between int) {
	if test.IsLong() {
		return 1000, 20
	}
	return 36, 12
}

// wanderSeed is the seed of all steps: WANDER_SEED=7 sets another one.
func wanderSeed() uint64 {
	text := os.Getenv("WANDER_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	Expect(err).NotTo(HaveOccurred(), "WANDER_SEED is a number")
	return seed
}

// wanders begins with all rights in the namespaces of the family, and, if auto, in the whole cluster.
func (f *family) wanders(ctx context.Context, auto bool) *wander {
	GinkgoHelper()
	seed := wanderSeed()
	AddReportEntry("seed", fmt.Sprintf("WANDER_SEED=%d", seed))
	w := &wander{
		family: f, random: rand.New(rand.NewPCG(seed, 0)), auto: auto, everywhere: auto, rights: map[string]bool{},
		parents: map[string]string{f.acme: "", f.a: f.acme, f.a1: f.a, f.b: f.acme, f.zeta: "", f.z: f.zeta},
		sources: map[client.ObjectKey]string{},
	}
	for namespace := range w.parents {
		w.rights[namespace] = true
		Expect(client.IgnoreAlreadyExists(f.Admin().Create(ctx, build.Hierarchy(namespace)))).To(Succeed())
		if auto {
			Expect(client.IgnoreAlreadyExists(f.Admin().Create(ctx, operatorBinding(namespace)))).To(Succeed())
		}
	}
	if auto {
		w.setEverywhere(ctx, false)
		f.watched(ctx, "secrets", false)
	}
	Eventually(ctx, w.informers).WithArguments("namespace").Should(Equal(w.allInformers()), w.String)
	return w
}

// allInformers is how many there are with all rights: two in each namespace of the forest, the template's too.
func (w *wander) allInformers() float64 { return float64(2 * (len(w.parents) + 1)) }

// informers counts the Synced informers of Secrets.
func (w *wander) informers(ctx context.Context, scope string) (float64, error) {
	m, err := w.Operator.Metrics(ctx)
	return m.Value("watchset_informers", map[string]string{"resource": "secrets", "scope": scope, "state": string(watchset.Synced)}), err
}

// namespaces are those of the family, sorted, so that the steps depend on the seed alone.
func (w *wander) namespaces() []string { return slices.Sorted(maps.Keys(w.parents)) }

func (w *wander) above(namespace string) []string {
	var all []string
	for at := w.parents[namespace]; at != ""; at = w.parents[at] {
		all = append(all, at)
	}
	return all
}

// sees says whether the operator may see what stands in a namespace, and all sources above it.
func (w *wander) sees(namespace string) bool {
	return w.everywhere || !slices.ContainsFunc(append(w.above(namespace), namespace), func(at string) bool { return !w.rights[at] })
}

func (w *wander) seen(sees bool) []string {
	return slices.DeleteFunc(w.namespaces(), func(namespace string) bool { return w.sees(namespace) != sees })
}

// step does one thing at random; if rights is false, it changes no rights.
func (w *wander) step(ctx context.Context, rights bool) {
	GinkgoHelper()
	n := w.random.IntN(100)
	switch {
	case rights && n < 40:
		w.toggleRight(ctx, w.draw(w.namespaces()))
	case rights && n < 45 && w.auto:
		w.setEverywhere(ctx, !w.everywhere)
	case n < 65:
		w.changeSource(ctx)
	case n < 95:
		w.loseCopies(ctx)
	default:
		w.moveLeaf(ctx)
	}
}

func (w *wander) draw(from []string) string { return from[w.random.IntN(len(from))] }

func (w *wander) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *wander) toggleRight(ctx context.Context, namespace string) {
	GinkgoHelper()
	w.rights[namespace] = !w.rights[namespace]
	w.note("right in %s: %t", namespace, w.rights[namespace])
	if w.rights[namespace] {
		w.create(ctx, operatorBinding(namespace))
	} else {
		w.remove(ctx, operatorBinding(namespace))
	}
}

func (w *wander) setEverywhere(ctx context.Context, may bool) {
	GinkgoHelper()
	w.everywhere = may
	w.note("right everywhere: %t", may)
	w.mayEverywhere(ctx, may)
}

// changeSource makes, changes, hides or deletes one of the sources.
func (w *wander) changeSource(ctx context.Context) {
	GinkgoHelper()
	at := client.ObjectKey{Namespace: w.draw([]string{w.acme, w.a, w.zeta})}
	at.Name = fmt.Sprintf("i72-%s-%d", at.Namespace[len(w.prefix):], w.random.IntN(4))
	w.value++
	value := fmt.Sprint(w.value)
	s := build.Source(build.Secret(at.Namespace, at.Name, value), v1alpha1.ModeUpdate)
	switch _, there := w.sources[at]; {
	case !there:
		Expect(client.IgnoreNotFound(w.Admin().Delete(ctx, s))).To(Succeed()) // it may exist in mode none
		w.create(ctx, s)
		w.sources[at] = value
	case w.random.IntN(3) == 0:
		w.remove(ctx, s)
		delete(w.sources, at)
	case w.random.IntN(4) == 0:
		w.label(ctx, s, v1alpha1.LabelPropagate, v1alpha1.ModeNone)
		delete(w.sources, at)
	default:
		change(ctx, w.family, s, func(s *corev1.Secret) { s.Data["key"] = []byte(value) })
		w.sources[at] = value
	}
	w.note("source %s: %q", at, w.sources[at])
}

// loseCopies deletes the copies in a namespace, as a user may where no policy is in force.
func (w *wander) loseCopies(ctx context.Context) {
	GinkgoHelper()
	namespace := w.draw([]string{w.a1, w.b, w.z})
	w.note("copies in %s are deleted", namespace)
	Expect(w.Admin().DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(namespace), client.HasLabels{v1alpha1.LabelInheritedFrom})).
		To(Succeed())
}

func (w *wander) moveLeaf(ctx context.Context) {
	GinkgoHelper()
	w.parents[w.a1] = w.draw([]string{w.a, w.b, w.zeta})
	w.note("%s moves to %s", w.a1, w.parents[w.a1])
	w.move(ctx, w.a1, w.parents[w.a1])
}

// wanted are the values of the copies in a namespace, by name, if the operator has all rights.
func (w *wander) wanted(namespace string) map[string]string {
	all := map[string]string{}
	for at, value := range w.sources {
		if slices.Contains(w.above(namespace), at.Namespace) {
			all[at.Name] = value
		}
	}
	return all
}

// copies are the values of the copies that stand in a namespace, by name.
func (w *wander) copies(ctx context.Context, namespace string) (map[string]string, error) {
	list := &corev1.SecretList{}
	err := w.Admin().List(ctx, list, client.InNamespace(namespace), client.HasLabels{v1alpha1.LabelInheritedFrom})
	all := map[string]string{}
	for _, s := range list.Items {
		if strings.HasPrefix(s.Name, "i72-") {
			all[s.Name] = string(s.Data["key"])
		}
	}
	return all, err
}

func (w *wander) String() string {
	text := ""
	for _, line := range w.log {
		text += line + "\n"
	}
	return fmt.Sprintf("steps:\n%ssees: %v\nrights: %v, everywhere: %t\n%s", text, w.seen(true), w.rights, w.everywhere, explain(w.World)())
}

// noticed waits until API server and operator know of all rights.
func (w *wander) noticed(ctx context.Context) {
	GinkgoHelper()
	w.mayList(ctx, build.Secret("", "", ""), "", w.everywhere)
	for namespace, may := range w.rights {
		w.mayWatchSecrets(ctx, namespace, may || w.everywhere)
	}
	if w.everywhere {
		w.watched(ctx, "secrets", true)
	} else {
		hidden := 0
		for _, may := range w.rights {
			if !may {
				hidden++
			}
		}
		Eventually(ctx, w.informers).WithArguments("namespace").Should(Equal(w.allInformers()-float64(2*hidden)), w.String)
	}
	for _, namespace := range w.namespaces() {
		want := "InSync: "
		if !w.sees(namespace) {
			want = "NotObserved: "
		}
		Eventually(ctx, w.report).WithArguments(namespace).Should(HavePrefix(want), w.String)
	}
}

// settles waits until the namespaces that the operator sees have the same copies as with all rights.
func (w *wander) settles(ctx context.Context) {
	GinkgoHelper()
	for _, namespace := range w.seen(true) {
		Eventually(ctx, w.copies).WithArguments(namespace).Should(Equal(w.wanted(namespace)), w.String)
	}
}

// rests does some steps that change no rights, and checks that nothing is written in namespaces that the operator does not see.
func (w *wander) rests(ctx context.Context, steps int) {
	GinkgoHelper()
	l := w.ledger(ctx, "secrets")
	for range steps {
		w.step(ctx, false)
	}
	w.loseCopies(ctx)
	w.settles(ctx)
	hidden := w.seen(false)
	// This namespace moves: the operator may have seen it for a part of the time.
	hidden = slices.DeleteFunc(hidden, func(namespace string) bool { return namespace == w.a1 })
	Expect(l.count(ctx, func(r audit.Request) bool { return r.IsWrite() && slices.Contains(hidden, r.Namespace) })).To(BeEmpty(), w.String)
}

// returns gives all rights back, and checks that all is as if the operator had always had them.
func (w *wander) returns(ctx context.Context) {
	GinkgoHelper()
	for _, namespace := range w.namespaces() {
		if !w.rights[namespace] {
			w.toggleRight(ctx, namespace)
		}
	}
	if w.everywhere != w.auto {
		w.setEverywhere(ctx, w.auto)
	}
	w.noticed(ctx)
	w.settles(ctx)
	w.move(ctx, w.a1, w.a)
	w.parents[w.a1] = w.a
	for at := range w.sources {
		w.remove(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}})
	}
	clear(w.sources)
	w.settles(ctx)
}

// wanderAbout is INF-I72.
func (f *family) wanderAbout(ctx context.Context, auto bool) {
	GinkgoHelper()
	w := f.wanders(ctx, auto)
	steps, between := wanderSteps()
	for done := 0; done < steps; done += between {
		for range between * 2 / 3 {
			w.step(ctx, true)
		}
		w.noticed(ctx)
		w.settles(ctx)
		w.rests(ctx, between-between*2/3)
		w.log = nil
	}
	w.returns(ctx)
}
