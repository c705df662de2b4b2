package devcluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Reported is a condition of the HierarchyConfiguration of a namespace. Where there is no such condition yet, it is empty.
func (w *World) Reported(ctx context.Context, namespace string, kind v1alpha1.ConditionType) (metav1.Condition, error) {
	hc := &v1alpha1.HierarchyConfiguration{}
	if err := w.Admin().Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha1.HierarchyConfigurationName}, hc); err != nil {
		return metav1.Condition{}, err
	}
	if c := v1alpha1.FindCondition(hc.Status.Conditions, kind); c != nil {
		return *c, nil
	}
	return metav1.Condition{}, nil
}
