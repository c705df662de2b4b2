package gather

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// ReadStoredConfig reads the configuration file in force, which the operator records in the cluster. name is what
// messages call that file. If the operator has recorded none yet, the error is NotFound.
func ReadStoredConfig(ctx context.Context, api client.Reader, namespace string) (name, text string, err error) {
	stored := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: namespace, Name: v1alpha1.AcceptedConfigName}
	err = api.Get(ctx, key, stored)
	text, recorded := stored.Data["config.yaml"]
	if err == nil && !recorded {
		missing := apierrors.NewNotFound(corev1.Resource("configmaps"), key.String())
		missing.ErrStatus.Message = "the operator has recorded none in ConfigMap " + key.String() + " yet"
		err = missing
	}
	return "ConfigMap " + key.String(), text, err
}
