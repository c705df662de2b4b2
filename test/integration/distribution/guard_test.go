package distribution_test

import (
	"context"
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

// tenant makes alice admin of a namespace, and waits until the API server has heard of it.
func (f *field) tenant(ctx context.Context, namespace string) {
	GinkgoHelper()
	Expect(f.Admin().Create(ctx, build.RoleBinding(namespace, "alice", "admin", build.RBACUser("alice")))).To(Succeed())
	Eventually(ctx, func() error {
		return f.As("alice").Create(ctx, build.Secret(namespace, "rehearsed", "1"), client.DryRunAll)
	}).Should(Succeed())
}

func forbids(text string) OmegaMatcher {
	return And(MatchError(apierrors.IsForbidden, "is a 403"), MatchError(ContainSubstring(text)))
}

var _ = Describe("what tenants may do to copies", func() {
	const alone, keys = "is written by the operator alone", "keys of tenancy.warren.dev belong to the operator"
	var f *field
	BeforeEach(func(ctx SpecContext) {
		f = plough(ctx, world)
		f.tenant(ctx, f.d1)
	})
	owner := func(s *corev1.Secret) {
		s.OwnerReferences = append(s.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "mine",
			UID: "0d21e2c4-0000-4000-8000-000000000001"})
	}

	It("DIST-D40 a tenant may not patch, replace or delete a locked copy, nor write its ownerReferences or `distributed-by`; "+
		"it is deleted with its namespace", func(ctx SpecContext) {
		f.create(ctx, onDrift(v1alpha1.DriftRevert))
		f.becomes(ctx, "True/Distributed")
		was := f.at(ctx, f.d1)
		alice := f.As("alice")
		Expect(alice.Patch(ctx, was.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"data":{"v":"eA=="}}`)))).
			To(forbids(alone))
		Expect(f.edit(ctx, "alice", f.d1, setting("v", "edited"))).To(forbids(alone))
		Expect(f.edit(ctx, "alice", f.d1, func(s *corev1.Secret) { delete(s.Labels, v1alpha1.LabelDistributedBy) })).To(forbids(keys))
		Expect(f.edit(ctx, "alice", f.d1, owner)).To(forbids(alone))
		Expect(alice.Delete(ctx, was.DeepCopy())).To(forbids(alone))
		f.untouched(ctx, was)
		Expect(f.Admin().Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.d1}})).To(Succeed())
		Eventually(ctx, f.gone).WithArguments(build.Namespace(f.d1)).Should(BeTrue(), "the namespace goes, and its copy with it")
		f.becomes(ctx, "True/Distributed")
	})

	It("DIST-D41 a tenant may edit the data of a copy that is not locked, not its keys of Warren or ownerReferences; "+
		"nor create an object with `distributed-by`", func(ctx SpecContext) {
		f.create(ctx)
		f.becomes(ctx, "True/Distributed")
		Expect(f.edit(ctx, "alice", f.d1, setting("v", "edited"))).To(Succeed())
		for _, key := range []string{v1alpha1.AnnotationSourceHash, v1alpha1.AnnotationAdopted, v1alpha1.AnnotationLocked} {
			Expect(f.edit(ctx, "alice", f.d1, func(s *corev1.Secret) { s.Annotations[key] = v1alpha1.True })).To(forbids(keys), key)
		}
		Expect(f.edit(ctx, "alice", f.d1, func(s *corev1.Secret) { delete(s.Annotations, v1alpha1.AnnotationSourceHash) })).To(forbids(keys))
		for _, by := range []string{"", "other"} {
			Expect(f.edit(ctx, "alice", f.d1, func(s *corev1.Secret) {
				if s.Labels[v1alpha1.LabelDistributedBy] = by; by == "" {
					delete(s.Labels, v1alpha1.LabelDistributedBy)
				}
			})).To(forbids(keys), "distributed-by: "+by)
		}
		Expect(f.edit(ctx, "alice", f.d1, owner)).To(forbids(alone))
		Expect(f.As("alice").Create(ctx, build.Secret(f.d1, "forged", "1", v1alpha1.LabelDistributedBy, f.id))).To(forbids(keys))
		Expect(f.data(ctx, f.d1)).To(Equal("v=edited"))
	})
})

var _ = Describe("what can't change", func() {
	var f *field
	BeforeEach(func(ctx SpecContext) { f = plough(ctx, world) })

	It("DIST-D56 data and `immutable` of an immutable ConfigMap can't change, nor a Secret's type; its labels can, and reach the copies; "+
		"a mutable one may become immutable", func(ctx SpecContext) {
		settings := func(value string, more map[string]any) change {
			return func(rd *v1alpha1.ResourceDistribution) {
				resource := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": f.id},
					"data": map[string]string{"v": value}}
				maps.Copy(resource, more)
				rd.Spec.Resource = raw(resource)
			}
		}
		labelled := map[string]any{"immutable": true, "metadata": map[string]any{"name": f.id, "labels": map[string]string{"app": "pull"}}}
		copied := func(ctx context.Context) *corev1.ConfigMap {
			m := &corev1.ConfigMap{}
			if f.Admin().Get(ctx, client.ObjectKey{Namespace: f.d1, Name: f.id}, m) != nil {
				return nil
			}
			return m
		}
		never := MatchError(ContainSubstring("its data can never change; create another ResourceDistribution"))
		f.create(ctx, settings("1", nil))
		f.becomes(ctx, "True/Distributed")
		f.change(ctx, settings("1", map[string]any{"immutable": true}))
		Eventually(ctx, copied).Should(HaveField("Immutable", HaveValue(BeTrue())), f.explain)
		f.becomes(ctx, "True/Distributed")
		Expect(f.attempt(ctx, "admin", settings("2", map[string]any{"immutable": true}))).To(never)
		Expect(f.attempt(ctx, "admin", settings("1", nil))).To(never)
		f.change(ctx, settings("1", labelled))
		Eventually(ctx, copied).Should(HaveField("Labels", HaveKeyWithValue("app", "pull")), f.explain)
		f.becomes(ctx, "True/Distributed")

		f.remove(ctx)
		Eventually(ctx, copied).Should(BeNil())
		f.create(ctx)
		f.becomes(ctx, "True/Distributed")
		typed := f.with(func(resource map[string]any) { resource["type"] = "example.com/other" })
		Expect(f.attempt(ctx, "admin", typed)).To(MatchError(ContainSubstring("spec.resource.type of a Secret can't change")))
	})
})
