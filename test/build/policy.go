package build

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Policy returns a policy that is not ours, and its binding: in one namespace, it allows an operation on objects of the resource only if
// the expression is true.
func Policy(namespace string, operation admissionv1.OperationType, resource schema.GroupVersionResource, expression,
	message string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	rule := admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{operation},
		Rule: admissionv1.Rule{APIGroups: []string{resource.Group}, APIVersions: []string{resource.Version},
			Resources: []string{resource.Resource}},
	}}
	name := metav1.ObjectMeta{Name: namespace + "-" + resource.Resource}
	return &admissionv1.ValidatingAdmissionPolicy{
			ObjectMeta: name,
			Spec: admissionv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{rule}},
				Validations:      []admissionv1.Validation{{Expression: expression, Message: message}},
			},
		}, &admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: name,
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
				MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
					MatchLabels: map[string]string{corev1.LabelMetadataName: namespace},
				}},
			},
		}
}
