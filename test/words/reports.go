package words

import (
	"cmp"
	"context"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Condition reads a condition of the object's present generation; it is empty where there is none.
func Condition(t v1alpha1.ConditionType) func(client.Object) metav1.Condition {
	return func(object client.Object) metav1.Condition {
		var all []metav1.Condition
		switch o := object.(type) {
		case *v1alpha1.SubNamespace:
			all = o.Status.Conditions
		case *v1alpha1.HierarchyConfiguration:
			all = o.Status.Conditions
		case *v1alpha1.LNamespace:
			all = o.Status.Conditions
		}
		found := v1alpha1.FindCondition(all, t)
		if found == nil || found.ObservedGeneration != object.GetGeneration() {
			return metav1.Condition{}
		}
		return *found
	}
}

// HaveCondition matches an object with such a condition of its present generation, whose message has these parts.
func HaveCondition(t v1alpha1.ConditionType, status metav1.ConditionStatus, reason v1alpha1.Reason, parts ...string) types.GomegaMatcher {
	all := []types.GomegaMatcher{gomega.HaveField("Status", status), gomega.HaveField("Reason", string(reason))}
	for _, part := range parts {
		all = append(all, gomega.HaveField("Message", gomega.ContainSubstring(part)))
	}
	return gomega.WithTransform(Condition(t), gomega.And(all...))
}

// Says reads an object until it has such a condition.
func (c Cluster) Says(ctx context.Context, object client.Object, t v1alpha1.ConditionType, status metav1.ConditionStatus,
	reason v1alpha1.Reason, parts ...string) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(ctx context.Context) (client.Object, error) { return object, c.Read(object)(ctx) }).
		Should(HaveCondition(t, status, reason, parts...))
}

// Ready reads objects until the condition Ready of each is True.
func (c Cluster) Ready(ctx context.Context, objects ...client.Object) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		gomega.Eventually(ctx, func(ctx context.Context) (metav1.Condition, error) {
			err := c.Read(object)(ctx)
			return Condition(v1alpha1.ConditionReady)(object), err
		}).Should(gomega.HaveField("Status", metav1.ConditionTrue), "%T %s is ready", object, client.ObjectKeyFromObject(object))
	}
}

// Messages reads the messages of the Events about an object with that reason, for Eventually. Reason "" is any.
func (c Cluster) Messages(object client.Object, reason v1alpha1.Reason) func(context.Context) ([]string, error) {
	return c.events(object, func(e corev1.Event) (string, bool) { return e.Message, reason == "" || e.Reason == string(reason) })
}

// Reasons reads the reasons of the Events about an object, for Eventually.
func (c Cluster) Reasons(object client.Object) func(context.Context) ([]string, error) {
	return c.events(object, func(e corev1.Event) (string, bool) { return e.Reason, true })
}

func (c Cluster) events(object client.Object, text func(corev1.Event) (string, bool)) func(context.Context) ([]string, error) {
	ginkgo.GinkgoHelper()
	kind, err := c.Admin().GroupVersionKindFor(object)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	about := client.MatchingFields{"involvedObject.kind": kind.Kind, "involvedObject.name": object.GetName()}
	in := cmp.Or(object.GetNamespace(), metav1.NamespaceDefault) // Events about cluster-scoped objects are in default
	return func(ctx context.Context) ([]string, error) {
		list := &corev1.EventList{}
		err := c.Admin().List(ctx, list, client.InNamespace(in), about)
		var texts []string
		for _, event := range list.Items {
			if found, ok := text(event); ok {
				texts = append(texts, found)
			}
		}
		return texts, err
	}
}
