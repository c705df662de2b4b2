package propagation_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("what is never propagated", func() {
	var f *family
	BeforeEach(func(ctx SpecContext) { f = grow(ctx, world) })

	It("PROP-N1 label propagate=update on an object that is never propagated leads to "+
		"no copy, and to one Event SourceExcluded", func(ctx SpecContext) {
		typed := func(name string, kind corev1.SecretType) *corev1.Secret {
			s := build.Secret(f.acme, name, "1")
			s.Type = kind
			return s
		}
		token := build.Annotated(typed("token", corev1.SecretTypeServiceAccountToken), corev1.ServiceAccountNameKey, "default")
		held := build.Secret(f.acme, "held", "1")
		held.Finalizers = []string{"example.com/held"}
		account, root := &corev1.ServiceAccount{}, build.ConfigMap(f.acme, "kube-root-ca.crt", "")
		account.Namespace, account.Name = f.acme, "default"
		for _, made := range []client.Object{account, root} { // the controller manager makes them
			Eventually(ctx, f.standing).WithArguments(made, f.acme).ShouldNot(BeEmpty())
		}
		sources := []client.Object{
			token, typed("bootstrap", "bootstrap.kubernetes.io/token"), typed("release", "helm.sh/release.v1"), held,
			build.ConfigMap(f.acme, "sh.helm.release.v1.app", "1", "owner", "helm"),
			build.ConfigMap(f.acme, "openshift-service-ca.crt", "1"), build.ConfigMap(f.acme, "istio-ca-root-cert", "1"),
			build.Service(f.acme, "kubernetes", 443),
		}
		f.create(ctx, sources...)
		sources = append(sources, account, root)
		l := map[string]*ledger{}
		for _, resource := range []string{"secrets", "configmaps", "serviceaccounts", "services"} {
			l[resource] = f.ledger(ctx, resource)
		}
		for _, source := range sources {
			f.label(ctx, source, v1alpha1.LabelPropagate, v1alpha1.ModeUpdate)
		}
		for _, source := range sources {
			Eventually(ctx, f.events).WithArguments(source, v1alpha1.ReasonSourceExcluded).Should(HaveLen(1), "%T %s", source, source.GetName())
		}
		for _, l := range l {
			l.rests(ctx, counts{})
		}
		for _, source := range sources {
			Expect(f.events(ctx, source, v1alpha1.ReasonSourceExcluded)).To(HaveLen(1), "%T %s", source, source.GetName())
		}
		change(ctx, f, held, func(s *corev1.Secret) { s.Finalizers = nil })
		f.copied(ctx, held, f.tree()...)
	})

	It("PROP-N3 when a source gets a finalizer, its copies are deleted; when the "+
		"finalizer is removed, they are created again", func(ctx SpecContext) {
		s := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, s)
		f.copied(ctx, s, f.tree()...)
		change(ctx, f, s, func(s *corev1.Secret) { s.Finalizers = []string{"example.com/held"} })
		f.absent(ctx, s, f.tree()...)
		change(ctx, f, s, func(s *corev1.Secret) { s.Finalizers = nil })
		f.copied(ctx, s, f.tree()...)
	})

	It("PROP-N4 with policies off, label propagate=update on a copy does not make it a "+
		"source, and the operator removes it as drift", func(ctx SpecContext) {
		f = grow(ctx, unguarded)
		s := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, s)
		f.copied(ctx, s, f.tree()...)
		l := f.ledger(ctx, "secrets")
		f.labelNamespace(ctx, f.a1, "tier", "web")
		f.label(ctx, build.Secret(f.a, "s", ""), v1alpha1.LabelPropagate, v1alpha1.ModeUpdate)
		f.copied(ctx, s, f.tree()...)
		l.come(ctx, counts{"update": 1})
	})
})
