package trees_test

import (
	"context"
	"maps"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/words"
)

// cluster is a cluster with the methods in which the cases are written. All of them act as the cluster admin.
type cluster struct{ words.Cluster }

// wish makes the HierarchyConfiguration of a namespace, or gives it another spec: the operator may have made it already.
func (c cluster) wish(ctx context.Context, namespace string, wishes ...build.Wish) {
	GinkgoHelper()
	hc := build.Hierarchy(namespace, wishes...)
	if err := test.UntilWebhookAnswers(func() error { return c.Admin().Create(ctx, hc.DeepCopy()) }); !apierrors.IsAlreadyExists(err) {
		Expect(err).NotTo(HaveOccurred())
		return
	}
	edit(ctx, c, build.Hierarchy(namespace), func(now *v1alpha1.HierarchyConfiguration) { now.Spec = hc.Spec })
}

// edit changes an object that exists by a patch of what differs.
func edit[T client.Object](ctx context.Context, c cluster, object T, change func(T)) {
	GinkgoHelper()
	Expect(c.Admin().Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	before := object.DeepCopyObject().(client.Object)
	change(object)
	Expect(test.UntilWebhookAnswers(func() error { return c.Admin().Patch(ctx, object, client.MergeFrom(before)) })).To(Succeed())
}

// label changes labels of a Namespace as kubectl does: key=value sets, key- removes.
func (c cluster) label(ctx context.Context, namespace string, edits ...string) {
	GinkgoHelper()
	edit(ctx, c, build.Namespace(namespace), func(n *corev1.Namespace) { n.Labels = edited(n.Labels, edits) })
}

// annotate changes annotations of a Namespace in the same way.
func (c cluster) annotate(ctx context.Context, namespace string, edits ...string) {
	GinkgoHelper()
	edit(ctx, c, build.Namespace(namespace), func(n *corev1.Namespace) { n.Annotations = edited(n.Annotations, edits) })
}

func edited(m map[string]string, edits []string) map[string]string {
	result := map[string]string{}
	maps.Copy(result, m)
	for _, text := range edits {
		if key, value, set := strings.Cut(text, "="); set {
			result[key] = value
		} else {
			delete(result, strings.TrimSuffix(text, "-"))
		}
	}
	return result
}

// grow creates SubNamespaces, each written as parent/name, and waits for each to be ready before the next.
func (c cluster) grow(ctx context.Context, subs ...string) {
	GinkgoHelper()
	for _, text := range subs {
		parent, name := split(text)
		Eventually(func() error { return c.Admin().Create(ctx, build.SubNamespace(parent, name)) }).WithContext(ctx).
			Should(Succeed(), "the namespace of a new LNamespace comes a moment later")
		Eventually(c.sub(text)).WithContext(ctx).Should(beReady())
	}
}

func split(text string) (parent, name string) {
	GinkgoHelper()
	parent, name, ok := strings.Cut(text, "/")
	Expect(ok).To(BeTrue(), "%q is not parent/name", text)
	return parent, name
}

// subNamespace is the address of a SubNamespace, for edit and Delete.
func subNamespace(text string) *v1alpha1.SubNamespace {
	GinkgoHelper()
	parent, name := split(text)
	return build.SubNamespace(parent, name)
}

// atOnce runs n functions at the same time and waits for all.
func atOnce(n int, do func(i int)) {
	GinkgoHelper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			defer GinkgoRecover()
			do(i)
		})
	}
	all.Wait()
}
