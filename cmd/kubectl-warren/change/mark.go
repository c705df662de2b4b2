package change

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
)

// TreeUID returns the UID by which a mark names the tree of the namespace called name: the UID of the LNamespace or, if
// the tree has none, of the root.
func TreeUID(ctx context.Context, api client.Reader, name string) (types.UID, error) {
	namespace, err := gather.ReadNamespace(ctx, api, name)
	if err != nil {
		return "", err
	}
	rootName := RootOf(namespace)
	if parent := namespace.Labels[v1alpha1.LabelParent]; rootName == "" && parent != "" {
		return "", fmt.Errorf("namespace %s is below %s, but the operator has recorded no root for it: kubectl warren describe %s shows why",
			name, parent, name)
	}
	if rootName == "" {
		return "", fmt.Errorf("namespace %s is neither a root nor a sub-namespace: make it a root first: kubectl warren set-type %s root",
			name, name)
	}
	root, err := gather.ReadNamespace(ctx, api, rootName)
	if err != nil {
		return "", err
	}
	tenant, err := gather.ReadTenant(ctx, api, rootName, root.Annotations[v1alpha1.AnnotationLNamespaceUID])
	if err != nil {
		return "", err
	}
	if tenant != nil {
		return tenant.UID, nil
	}
	return root.UID, nil
}

// RootOf returns the root of a namespace's tree, as the namespace's own labels and annotations name it; "" if it is in
// no tree, or if the operator has recorded no root for it.
func RootOf(namespace *metav1.PartialObjectMetadata) string {
	switch {
	case namespace.Labels[v1alpha1.LabelParent] != "":
		root, _, _ := strings.Cut(namespace.Annotations[v1alpha1.AnnotationAncestry], "/")
		return root
	case namespace.Labels[v1alpha1.LabelType] == v1alpha1.TypeRoot:
		return namespace.Name
	}
	return ""
}

// Mark sets the annotation by which a cluster admin lets a namespace join the tree with this UID, or removes it if uid
// is "". changed is false if the annotation already had this value.
func Mark(ctx context.Context, api client.Client, namespace *metav1.PartialObjectMetadata, uid types.UID,
	c Options) (changed bool, err error) {
	if namespace.Annotations[v1alpha1.AnnotationAdopt] == string(uid) {
		return false, nil
	}
	if c.IsRehearsed() {
		return true, nil
	}
	var value *types.UID
	if uid != "" {
		value = &uid
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": namespace.UID, "annotations": map[string]any{v1alpha1.AnnotationAdopt: value},
	}})
	if err != nil {
		return false, err
	}
	return true, c.ClientFor(api).Patch(ctx, namespace, client.RawPatch(types.MergePatchType, data))
}
