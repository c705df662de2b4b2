package migrate

import (
	"context"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

var capsulePeer = peer{
	word: "capsule", title: "Capsule", namespace: "capsule-system", prefix: "capsule-", group: capsuleGroup,
	bystander: "capsule-proxy", readGrantRoles: provisionersOfCapsule,
	except: ",\n" +
		"but for the ResourceQuotas that limit a Tenant as a whole: --finish deletes them when Warren's own limit the same",
	readEstate: func(ctx context.Context, r *reader, c *Cluster) (*Estate, error) {
		tenants, served, err := r.listPeerObjects(ctx, capsuleGroup, "Tenant")
		if err == nil && !served {
			err = notInstalledError("Capsule", capsuleGroup)
		}
		if err != nil {
			return nil, err
		}
		found := Capsule{Tenants: tenants}
		for _, kind := range kindsOfCapsule() {
			objects, _, err := r.listPeerObjects(ctx, capsuleGroup, kind)
			if err != nil {
				return nil, err
			}
			found.Others = append(found.Others, objects...)
		}
		if err := r.readReplicas(ctx, &found); err != nil {
			return nil, err
		}
		if err := r.readTreeQuotas(ctx, &c.Quotas, client.HasLabels{capsuleQuota}, client.HasLabels{capsulePool},
			client.HasLabels{capsuleGlobalQuota}); err != nil {
			return nil, err
		}
		review := &authenticationv1.SelfSubjectReview{}
		if err := r.api.Create(ctx, review); err != nil {
			return nil, err
		}
		c.Caller = review.Status.UserInfo.Username
		return EstateOfCapsule(found, *c, ourRules{r.configuration, r.operatorNamespace}), nil
	},
}

// provisionersOfCapsule returns the ClusterRoles by which Capsule lets its users make and patch namespaces: the one
// that its documentation names, and those that its CapsuleConfigurations name instead.
func provisionersOfCapsule(ctx context.Context, r *reader) ([]string, error) {
	configurations, _, err := r.listPeerObjects(ctx, capsuleGroup, "CapsuleConfiguration")
	return provisionersIn(configurations), err
}

func provisionersIn(configurations []unstructured.Unstructured) []string {
	names := []string{capsuleProvisioner}
	for _, configuration := range configurations {
		if name := nestedText(configuration.Object, "spec", "rbac", "provisioner"); name != "" &&
			!slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// writtenByCapsule are the kinds that Capsule writes into the namespaces of Tenants, with the label that objects of
// each kind have.
var writtenByCapsule = []struct {
	schema.GroupKind
	label string
}{
	{roleBindings.GroupKind(), capsuleBinding},
	{schema.GroupKind{Kind: "ResourceQuota"}, capsuleQuota},
	{schema.GroupKind{Kind: "ResourceQuota"}, capsulePool},
	{schema.GroupKind{Kind: "ResourceQuota"}, capsuleGlobalQuota},
	{schema.GroupKind{Kind: "LimitRange"}, capsuleLimits},
	{schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"}, capsulePolicy},
}

// readReplicas reads what Capsule has written into namespaces, and the RoleBindings that a migration has made.
func (r *reader) readReplicas(ctx context.Context, found *Capsule) error {
	read := func(kind schema.GroupKind, into *[]unstructured.Unstructured, labels client.ListOption) error {
		objects, _, err := r.listPeerObjects(ctx, kind.Group, kind.Kind, labels)
		*into = append(*into, objects...)
		return err
	}
	for _, written := range writtenByCapsule {
		if err := read(written.GroupKind, &found.Replicas, client.HasLabels{written.label}); err != nil {
			return err
		}
	}
	for kind := range replicatedKinds(found.Others) {
		if err := read(kind, &found.Replicas, client.HasLabels{capsuleManagedBy}); err != nil {
			return err
		}
	}
	return read(roleBindings.GroupKind(), &found.Made, client.MatchingLabels{v1alpha1.LabelCreatedBy: madeHere})
}

// replicatedKinds returns the kinds of the objects that TenantResources and GlobalTenantResources have replicated, as
// their status lists them.
func replicatedKinds(resources []unstructured.Unstructured) map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{}
	for _, resource := range resources {
		items, _, _ := unstructured.NestedSlice(resource.Object, "status", "processedItems")
		for _, item := range items {
			fields, _ := item.(map[string]any)
			kind := schema.GroupKind{Group: nestedText(fields, "group"), Kind: nestedText(fields, "kind")}
			if group, err := schema.ParseGroupVersion(nestedText(fields, "apiVersion")); kind.Group == "" && err == nil {
				kind.Group = group.Group
			}
			if kind.Kind != "" {
				kinds[kind] = true
			}
		}
	}
	return kinds
}
