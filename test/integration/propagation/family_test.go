package propagation_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
)

// family is the fixture of the page, under names of its own: acme ⊃ a ⊃ a1, acme ⊃ b; zeta ⊃ z; template tmpl; solo is
// plain.
type family struct {
	*devcluster.World
	// prefix starts all of its names.
	prefix                              string
	acme, a, a1, b, zeta, z, tmpl, solo string
}

// grow makes a family, and waits until the operator, where one runs, knows all of it. Otherwise it would plan and read a source again for
// each namespace that it sees later. All namespaces of the family end with the World.
func grow(ctx context.Context, w *devcluster.World) *family {
	GinkgoHelper()
	p := strings.ToLower(rand.Text()[:8]) + "-"
	f := &family{World: w, prefix: p, acme: p + "acme", a: p + "a", a1: p + "a1", b: p + "b", zeta: p + "zeta", z: p + "z",
		tmpl: p + "tmpl", solo: p + "solo"}
	f.create(ctx, build.Root(f.acme), build.Child(f.a, f.acme), build.Child(f.a1, f.a), build.Child(f.b, f.acme),
		build.Root(f.zeta), build.Child(f.z, f.zeta), build.Template(f.tmpl), build.Namespace(f.solo))
	if w.Operator == nil || w.Operator.Process() != nil && !w.Operator.Process().Running() {
		return f
	}
	for name, tree := range map[string]string{f.a: f.acme, f.a1: f.acme, f.b: f.acme, f.z: f.zeta} {
		Eventually(ctx, func(ctx context.Context) (map[string]string, error) {
			n := &corev1.Namespace{}
			err := f.Admin().Get(ctx, client.ObjectKey{Name: name}, n)
			return n.Labels, err
		}).Should(HaveKey(v1alpha1.TreeLabel(tree)), explain(w))
	}
	return f
}

// tree are the namespaces below acme.
func (f *family) tree() []string { return []string{f.a, f.a1, f.b} }

func (f *family) create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(f.Admin().Create(ctx, object)).To(Succeed(), "creating %T %s/%s", object, object.GetNamespace(), object.GetName())
	}
}

// change reads an object, changes it and sends the difference. Afterwards, object is as the API server stored it.
func change[T client.Object](ctx context.Context, f *family, object T, edit func(T)) {
	GinkgoHelper()
	Expect(f.Admin().Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	before := object.DeepCopyObject().(client.Object)
	edit(object)
	Expect(f.Admin().Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
}

// label sets labels, in pairs; an empty value takes one off.
func (f *family) label(ctx context.Context, object client.Object, labels ...string) {
	GinkgoHelper()
	change(ctx, f, object, func(object client.Object) {
		all := object.GetLabels()
		if all == nil {
			all = map[string]string{}
		}
		for i := 0; i+1 < len(labels); i += 2 {
			if all[labels[i]] = labels[i+1]; labels[i+1] == "" {
				delete(all, labels[i])
			}
		}
		object.SetLabels(all)
	})
}

// labelNamespace is label for the namespace of that name.
func (f *family) labelNamespace(ctx context.Context, name string, labels ...string) {
	GinkgoHelper()
	f.label(ctx, build.Namespace(name), labels...)
}

// move puts a namespace below another parent; "" makes it plain.
func (f *family) move(ctx context.Context, name, parent string) {
	GinkgoHelper()
	f.labelNamespace(ctx, name, v1alpha1.LabelParent, parent)
}

func (f *family) remove(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(f.Admin().Delete(ctx, object)).To(Succeed(), "deleting %T %s/%s", object, object.GetNamespace(), object.GetName())
	}
}

// at returns the object of the same kind and name in another namespace. It must be there.
func at[T client.Object](ctx context.Context, f *family, object T, namespace string) T {
	GinkgoHelper()
	other := object.DeepCopyObject().(T)
	Expect(f.Admin().Get(ctx, client.ObjectKey{Namespace: namespace, Name: object.GetName()}, other)).To(Succeed())
	return other
}

func kindOf(object client.Object) schema.GroupVersionKind {
	GinkgoHelper()
	kind, err := apiutil.GVKForObject(object, devcluster.Scheme())
	Expect(err).NotTo(HaveOccurred())
	return kind
}

// reports are the HierarchyConfigurations of a namespace, in whose conditions the operator reports.
func (f *family) reports(ctx context.Context, namespace string) []v1alpha1.HierarchyConfiguration {
	GinkgoHelper()
	list := &v1alpha1.HierarchyConfigurationList{}
	Expect(f.Admin().List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	return list.Items
}

// report is what the namespace's HierarchyConfiguration says of its copies: "Conflict: Secret …"; "" where there is none.
func (f *family) report(ctx context.Context, namespace string) string {
	c, err := f.Reported(ctx, namespace, v1alpha1.ConditionPropagated)
	switch {
	case err != nil:
		return ""
	case (c.Status == metav1.ConditionTrue) != (c.Reason == string(v1alpha1.ReasonInSync)):
		return fmt.Sprint(c)
	}
	return c.Reason + ": " + c.Message
}

// isHalted waits until the operator reports that namespaces are halted.
func (f *family) isHalted(ctx context.Context, namespaces ...string) {
	GinkgoHelper()
	for _, namespace := range namespaces {
		Eventually(ctx, func(ctx context.Context) (metav1.ConditionStatus, error) {
			c, err := f.Reported(ctx, namespace, v1alpha1.ConditionHalted)
			return c.Status, err
		}).Should(Equal(metav1.ConditionTrue), explain(f.World))
	}
}

// says waits until the report of each namespace begins with its text.
func (f *family) says(ctx context.Context, reports map[string]string) {
	GinkgoHelper()
	for namespace, report := range reports {
		Eventually(ctx, f.report).WithArguments(namespace).Should(HavePrefix(report))
	}
}

// events are the messages of the Events on an object with that reason; "" means any.
func (f *family) events(ctx context.Context, object client.Object, reason v1alpha1.Reason) []string {
	list := &corev1.EventList{}
	if err := f.Admin().List(ctx, list, client.InNamespace(object.GetNamespace())); err != nil {
		return []string{err.Error()}
	}
	var messages []string
	for _, event := range list.Items {
		if about := event.InvolvedObject; about.Name == object.GetName() && about.Kind == kindOf(object).Kind &&
			(reason == "" || event.Reason == string(reason)) {
			for range max(event.Count, 1) {
				messages = append(messages, event.Message)
			}
		}
	}
	return messages
}
