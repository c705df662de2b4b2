package gather

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ConfigMapName is the ConfigMap that `make deploy` makes, which is mounted as the operator's configuration file.
const ConfigMapName = "warren-config"

// ReadStoredConfig reads the configuration file that is stored in the cluster. name is what to call it.
func ReadStoredConfig(ctx context.Context, api client.Reader, namespace string) (name, text string, err error) {
	stored := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: namespace, Name: ConfigMapName}
	err = api.Get(ctx, key, stored)
	return "ConfigMap " + key.String(), stored.Data["config.yaml"], err
}
