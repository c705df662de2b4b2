package build

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/budget"
)

// Pod makes a pod with a name that the API server chooses, and one container that nothing here will ever run.
func Pod(namespace string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "pod-"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.invalid/c"}}}}
}

// Touch is a patch after which controllers look at an object again: it sets an annotation to the present time.
func Touch() client.Patch {
	return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":%q}}}`, time.Now().String()))
}

// FailedCreate makes the Event of a controller whose object the API server refused with this message.
func FailedCreate(namespace, message string) *corev1.Event {
	now := metav1.Now()
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, GenerateName: "refused-"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "ResourceQuota", Namespace: namespace, Name: budget.QuotaName},
		Reason:         "FailedCreate", Message: message, Type: corev1.EventTypeWarning, Source: corev1.EventSource{Component: "test"},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
}
