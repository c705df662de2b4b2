package build

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Source makes an object a source in that mode.
func Source[T client.Object](object T, mode string) T {
	return Labelled(object, v1alpha1.LabelPropagate, mode)
}

// Labelled adds labels, in pairs of key and value.
func Labelled[T client.Object](object T, labels ...string) T {
	object.SetLabels(merged(object.GetLabels(), labels))
	return object
}

// Annotated adds annotations, in pairs of key and value.
func Annotated[T client.Object](object T, annotations ...string) T {
	object.SetAnnotations(merged(object.GetAnnotations(), annotations))
	return object
}

func merged(all map[string]string, more []string) map[string]string {
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, pairs(more))
	return all
}

// Role makes a Role that allows verbs on pods.
func Role(namespace, name string, verbs ...string) *rbacv1.Role {
	return &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: verbs}},
	}
}

// Service makes a Service of type ClusterIP with one port.
func Service(namespace, name string, port int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Name: "web", Port: port}}},
	}
}

// Deployment makes a Deployment of one container that nothing here will ever run.
func Deployment(namespace, name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
			},
		},
	}
}
