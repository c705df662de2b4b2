package propagation_test

import (
	"bytes"
	"context"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("a copy", func() {
	var f *family
	BeforeEach(func(ctx SpecContext) { f = grow(ctx, world) })

	// given makes the Secret of PROP-P1 and waits for its copies.
	given := func(ctx context.Context, name string) *corev1.Secret {
		s := build.Secret(f.acme, name, "1", "app", "x")
		s.Data["second"] = []byte("2")
		f.create(ctx, build.Source(s, v1alpha1.ModeUpdate))
		f.copied(ctx, s, f.tree()...)
		return s
	}

	It("PROP-P1 once acme/s gets label propagate=update, a, a1 and b have a copy with its type, data and labels, and inherited-from=acme: "+
		"3 creates, no read of copies, 1 of acme/s", func(ctx SpecContext) {
		s := build.Secret(f.acme, "s", "1", "app", "x")
		s.Data["second"] = []byte("2")
		f.create(ctx, s)
		l := f.ledger(ctx, "secrets")
		f.label(ctx, s, v1alpha1.LabelPropagate, v1alpha1.ModeUpdate)
		f.copied(ctx, s, f.tree()...)
		l.come(ctx, counts{"create": 3})
		Expect(l.gets(ctx, f.tree()...)).To(BeZero(), l.String)
		Expect(l.gets(ctx, f.acme)).To(Equal(1), l.String)
	})

	It("PROP-P2 after one edit of acme/s that changes a value and removes a key and a label, all copies equal it: 3 updates with UID and "+
		"resourceVersion, no read of copies", func(ctx SpecContext) {
		s := given(ctx, "s")
		l := f.ledger(ctx, "secrets")
		change(ctx, f, s, func(s *corev1.Secret) {
			delete(s.Data, "second")
			delete(s.Labels, "app")
			s.Data["key"] = []byte("3")
		})
		f.copied(ctx, s, f.tree()...)
		l.come(ctx, counts{"update": 3})
		Expect(l.gets(ctx, f.tree()...)).To(BeZero(), l.String)
		l.guarded(ctx)
	})

	for what, end := range map[string]func(context.Context, *corev1.Secret){
		"loses the label": func(ctx context.Context, s *corev1.Secret) { f.label(ctx, s, v1alpha1.LabelPropagate, "") },
		"says none": func(ctx context.Context, s *corev1.Secret) {
			f.label(ctx, s, v1alpha1.LabelPropagate, v1alpha1.ModeNone)
		},
		"is deleted": func(ctx context.Context, s *corev1.Secret) { f.remove(ctx, s) },
	} {
		It("PROP-P3 when acme/s loses its label, gets propagate=none or is deleted, its copies are deleted: 3 deletes with preconditions, at "+
			"most 2 live reads. Other Secrets stay: the source "+what, func(ctx SpecContext) {
			s := given(ctx, "s")
			for _, namespace := range f.tree() {
				f.create(ctx, build.Secret(namespace, "t", "untouched"))
			}
			before := at(ctx, f, build.Secret(f.a, "t", ""), f.a)
			l, namespaces := f.ledger(ctx, "secrets"), f.ledger(ctx, "namespaces")
			end(ctx, s)
			f.absent(ctx, s, f.tree()...)
			l.come(ctx, counts{"delete": 3})
			l.guarded(ctx)
			Expect(l.gets(ctx, f.tree()...)).To(BeZero(), l.String)
			Expect(l.gets(ctx, f.acme)+namespaces.count(ctx, anyRequest)["get"]).To(BeNumerically("<=", 2), l.String)
			Expect(at(ctx, f, before, f.a)).To(Equal(before))
		})
	}

	It("PROP-P4 a new namespace below a soon has copies of the sources in acme "+
		"and in a, each straight from its source", func(ctx SpecContext) {
		upper, lower := given(ctx, "s"), build.Source(build.ConfigMap(f.a, "m", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, lower, build.Child(f.prefix+"a2", f.a))
		f.copied(ctx, upper, f.prefix+"a2")
		f.copied(ctx, lower, f.prefix+"a2")
	})

	It("PROP-P5 HIER-K1 each object of a kind in mode All has copies in all namespaces below its own, until it has the label "+
		"propagate=none", func(ctx SpecContext) {
		r, r2 := build.Role(f.acme, "r", "get"), build.Role(f.a, "r2", "list")
		f.create(ctx, r, r2)
		f.copied(ctx, r, f.tree()...)
		f.copied(ctx, r2, f.a1)
		f.staysAbsent(ctx, r2, f.b, f.acme)
		change(ctx, f, r, func(r *rbacv1.Role) { build.Labelled(r, v1alpha1.LabelPropagate, v1alpha1.ModeNone) })
		f.absent(ctx, r, f.tree()...)
	})

	It("PROP-P6 an empty ConfigMap, binaryData, an immutable Secret and Role a:b.c have equal copies; so has a Secret with a "+
		"253-character name, below a root with a 63-character name", func(ctx SpecContext) {
		root := f.prefix + strings.Repeat("x", 63-len(f.prefix))
		f.create(ctx, build.Root(root), build.Child(f.prefix+"child", root))
		yes := true
		empty := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.acme, Name: "empty"}}
		binary := build.ConfigMap(f.acme, "binary", "text")
		binary.BinaryData = map[string][]byte{"raw": {0, 0xff, 0xfe}}
		immutable := build.Secret(f.acme, "immutable", "for ever")
		immutable.Immutable = &yes
		role := build.Role(f.acme, "a:b.c", "get")
		for _, source := range []client.Object{empty, binary, immutable, role} {
			f.create(ctx, build.Source(source, v1alpha1.ModeUpdate))
			f.copied(ctx, source, f.tree()...)
		}
		long := build.Source(build.Secret(root, strings.Repeat("n", 253), "1"), v1alpha1.ModeUpdate)
		f.create(ctx, long)
		f.copied(ctx, long, f.prefix+"child")
	})

	It("PROP-P7 a copy has none of its source's ownerReferences, generateName, last-applied-configuration and label "+
		"argocd.argoproj.io/instance, and still exists after 10 s", func(ctx SpecContext) {
		owner := build.ConfigMap(f.acme, "owner", "1")
		f.create(ctx, owner)
		s := build.Annotated(build.Secret(f.acme, "", "1", "argocd.argoproj.io/instance", "app"), corev1.LastAppliedConfigAnnotation, "{}")
		s.GenerateName = "made-"
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
		f.create(ctx, build.Source(s, v1alpha1.ModeUpdate))
		f.copied(ctx, s, f.tree()...)
		for _, namespace := range f.tree() {
			found := at(ctx, f, s, namespace)
			Expect(found.OwnerReferences).To(BeEmpty())
			Expect(found.GenerateName).To(BeEmpty())
			Expect(found.Annotations).NotTo(HaveKey(corev1.LastAppliedConfigAnnotation))
			Expect(found.Labels).NotTo(HaveKey("argocd.argoproj.io/instance"))
		}
		Consistently(ctx, func(ctx context.Context) ([]string, error) { return f.standing(ctx, s, f.tree()...) }).
			WithTimeout(test.Quiet(10*time.Second)).Should(HaveLen(3), "the garbage collector has no reason to delete it")
	})

	It("PROP-P8 a source in a namespace of no tree has no copy and no Event; once the "+
		"namespace is a root, its child has a copy", func(ctx SpecContext) {
		s := build.Source(build.Secret(f.solo, "s", "1"), v1alpha1.ModeUpdate)
		l := f.ledger(ctx, "secrets")
		f.create(ctx, s)
		l.rests(ctx, counts{})
		Expect(f.events(ctx, s, "")).To(BeEmpty())
		f.labelNamespace(ctx, f.solo, v1alpha1.LabelType, v1alpha1.TypeRoot)
		f.create(ctx, build.Child(f.prefix+"child", f.solo))
		f.copied(ctx, s, f.prefix+"child")
	})

	It("PROP-P9 a Secret, a ConfigMap and a Role of one name have copies that are independent of each other", func(ctx SpecContext) {
		secret := build.Source(build.Secret(f.acme, "same", "secret"), v1alpha1.ModeUpdate)
		configMap := build.Source(build.ConfigMap(f.acme, "same", "config"), v1alpha1.ModeUpdate)
		role := build.Role(f.acme, "same", "get")
		f.create(ctx, secret, configMap, role)
		f.copied(ctx, secret, f.tree()...)
		f.copied(ctx, configMap, f.tree()...)
		f.copied(ctx, role, f.tree()...)
		f.remove(ctx, secret)
		f.absent(ctx, secret, f.tree()...)
		f.staysCopied(ctx, configMap, f.tree()...)
		f.staysCopied(ctx, role, f.tree()...)
	})

	It("PROP-P10 while a source changes 20 times in quick succession, no copy shows an older value after a newer one; in the end all "+
		"copies have the last value", func(ctx SpecContext) {
		s := given(ctx, "s")
		seen, err := f.Admin().Watch(ctx, &corev1.SecretList{}, client.MatchingLabels{v1alpha1.LabelInheritedFrom: f.acme})
		Expect(err).NotTo(HaveOccurred())
		defer seen.Stop()
		for i := 10; i < 30; i++ {
			before := s.DeepCopy()
			s.Data["key"] = []byte(strconv.Itoa(i))
			Expect(f.Admin().Patch(ctx, s, client.MergeFrom(before))).To(Succeed())
		}
		f.copied(ctx, s, f.tree()...)
		last := map[string]int{}
		Eventually(ctx, func() map[string]int {
			for {
				select {
				case event := <-seen.ResultChan():
					found := event.Object.(*corev1.Secret)
					value, err := strconv.Atoi(string(found.Data["key"]))
					Expect(err).NotTo(HaveOccurred())
					Expect(event.Type).NotTo(Equal(watch.Deleted))
					Expect(value).To(BeNumerically(">=", last[found.Namespace]), "in %s", found.Namespace)
					last[found.Namespace] = value
				default:
					return last
				}
			}
		}).Should(Equal(map[string]int{f.a: 29, f.a1: 29, f.b: 29}))
	})

	It("PROP-P11 a copy that exceeds the server's limit on annotations is Rejected with the server's text, and tried again with back-off; "+
		"other sources are copied meanwhile", func(ctx SpecContext) {
		s := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeUpdate)
		const limit = 256 << 10 // of all annotations together
		s.Annotations = map[string]string{"long": strings.Repeat("x", limit-len("long"))}
		s.Data = map[string][]byte{"key": bytes.Repeat([]byte("x"), corev1.MaxSecretSize)}
		larger := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeUpdate)
		larger.Data = map[string][]byte{"key": append(s.Data["key"], 'x')}
		Expect(f.Admin().Create(ctx, larger)).To(MatchError(ContainSubstring("data: Too long")), "the source's data are at the limit")
		larger.Data, larger.Annotations = s.Data, map[string]string{"long": s.Annotations["long"] + "x"}
		Expect(f.Admin().Create(ctx, larger)).To(MatchError(ContainSubstring("annotations: Too long")), "and so are its annotations")
		l, began := f.ledger(ctx, "secrets"), time.Now()
		f.create(ctx, s)
		Eventually(ctx, f.events).WithArguments(s, v1alpha1.ReasonCopyRejected).
			Should(ContainElement(ContainSubstring("may not be more than")), explain(world))
		f.says(ctx, map[string]string{f.a: fmt.Sprintf("Rejected: Secret %q from %q", "s", f.acme)})
		other := given(ctx, "other")
		f.copied(ctx, other, f.tree()...)
		refused := func(ctx context.Context) int { return l.writes(ctx)["create"] - 3 }
		Eventually(ctx, refused).Should(BeNumerically(">", 3), "it is tried again")
		Expect(refused(ctx)).To(BeNumerically("<", 50+3*int(time.Since(began)/time.Second)), "with a back-off")
		f.staysAbsent(ctx, s, f.tree()...)
		change(ctx, f, s, func(s *corev1.Secret) { s.Annotations = nil })
		f.copied(ctx, s, f.tree()...)
	})

	It("PROP-P11 a copy that exceeds what etcd stores is Rejected with the server's text; other sources are copied; after the source has "+
		"shrunk, it is copied", func(ctx SpecContext) {
		of := func(size int, label string) *unstructured.Unstructured {
			return build.Labelled(widget("Widget", f.acme, "w", strings.Repeat("x", size)), label, v1alpha1.ModeUpdate)
		}
		const least, step = 1400 << 10, 64                    // our keys need more than one step
		steps := sort.Search(200<<10/step, func(n int) bool { // with a label of the same length, which copies nothing
			w := of(least+n*step, strings.Replace(v1alpha1.LabelPropagate, "warren", "barren", 1))
			if err := f.Admin().Create(ctx, w); err != nil {
				Expect(err).To(MatchError(ContainSubstring("request is too large")))
				return true
			}
			f.remove(ctx, w)
			return false
		})
		s := of(least+(steps-1)*step, v1alpha1.LabelPropagate)
		f.create(ctx, s)
		Eventually(ctx, f.events).WithArguments(s, v1alpha1.ReasonCopyRejected).
			Should(ContainElement(ContainSubstring("request is too large")), explain(world))
		f.says(ctx, map[string]string{f.a: fmt.Sprintf("Rejected: Widget %q from %q", "w", f.acme)})
		given(ctx, "other")
		change(ctx, f, s, func(s *unstructured.Unstructured) { s.Object["spec"] = map[string]any{"colour": "red"} })
		for _, namespace := range f.tree() {
			Eventually(ctx, func() error { return f.Admin().Get(ctx, client.ObjectKey{Namespace: namespace, Name: "w"}, of(0, "a")) }).
				Should(Succeed(), explain(world))
		}
	})
})
