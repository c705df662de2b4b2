package vetting

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// watchRole makes the vetter look whenever the ClusterRole changes, until ctx is done. The
// ClusterRoles that are aggregated into it need no watch: Kubernetes writes their rules into the role itself.
func (v *Vetter) watchRole(ctx context.Context) error {
	byName := func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, v.Role).String()
	}
	informer := metadatainformer.NewFilteredMetadataInformer(
		v.metadata, rbacv1.SchemeGroupVersion.WithResource("clusterroles"), metav1.NamespaceAll, 0, cache.Indexers{}, byName).Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { v.Again() },
		UpdateFunc: func(any, any) { v.Again() },
		DeleteFunc: func(any) { v.Again() },
	})
	if err != nil {
		return fmt.Errorf("watching ClusterRole %s: %w", v.Role, err)
	}
	go informer.RunWithContext(ctx)
	return nil
}
