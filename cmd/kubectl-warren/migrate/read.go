package migrate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/rules"
)

// peer is another operator from which a cluster can move.
type peer struct {
	// word names it on the command line, title in sentences.
	word, title string
	// namespace is where it usually runs; prefix begins the names of its Deployments and webhook configurations.
	namespace, prefix string
	// group is the API group of its own kinds.
	group string
	// copyLabel is a label by which the peer marks each copy as its own, under a key that other programs use too.
	copyLabel struct{ key, value string }
	// labelAdvice is the end of a sentence that states which of Warren's labels replace the peer's.
	labelAdvice string
	// holdsNamespaces reports that objects of its kinds in namespaces have finalizers.
	holdsNamespaces bool
	// needsFile reports that its configuration is a file, which the flag --peer-config names.
	needsFile bool
	// except names what the last step deletes nevertheless, as the end of a sentence; "" if it deletes nothing.
	except string
	// bystander begins the names of Deployments in the peer's namespace that only answer users. The migration doesn't stop them.
	bystander string
	// readGrantRoles reads the names of the ClusterRoles that give users broad rights which only the peer's webhooks
	// restrict; nil if the peer has none.
	readGrantRoles func(ctx context.Context, r *reader) ([]string, error)
	// readEstate reads the peer's objects, and returns the Estate that they describe.
	readEstate func(ctx context.Context, r *reader, c *Cluster) (*Estate, error)
}

// reader reads what a plan needs, with the rights of the caller.
type reader struct {
	api               client.Client
	peer              peer
	peerNamespace     string
	operatorNamespace string
	configuration     *config.OperatorConfiguration
	peerConfiguration []byte
}

// readEverything reads the objects of the cluster and of the peer anew.
func (r *reader) readEverything(ctx context.Context) (*Estate, Cluster, error) {
	c := Cluster{
		Namespaces: map[string]*metav1.PartialObjectMetadata{}, Subs: map[string]*v1alpha1.SubNamespace{},
		Hierarchies: map[string]*v1alpha1.HierarchyConfiguration{}, LNamespaces: map[string]*v1alpha1.LNamespace{},
		Rules: rules.ForForest(r.configuration, r.operatorNamespace), CopyRules: rules.ForCopies(r.configuration),
	}
	// LNamespaces are read before namespaces, because an LNamespace is deleted after its root. In the other order, a root
	// that is deleted in between would look like a namespace that took the name of a Tenant. The plan would leave out that
	// Tenant, and start the peer before all is undone.
	for _, read := range []func(context.Context, *Cluster) error{r.readWarrenObjects, r.readNamespaces, r.readConfiguredKinds,
		r.readPeerEngine, r.readOldStoredVersions, r.readPeerGrants} {
		if err := read(ctx, &c); err != nil {
			return nil, c, err
		}
	}
	estate, err := r.peer.readEstate(ctx, r, &c)
	if err == nil {
		estate.peer = r.peer
		err = r.readPeerSelectors(ctx, estate)
	}
	return estate, c, err
}

func (r *reader) readNamespaces(ctx context.Context, c *Cluster) error {
	return r.eachMetadata(ctx, corev1.SchemeGroupVersion.WithKind("Namespace"), func(object *metav1.PartialObjectMetadata) {
		c.Namespaces[object.Name] = object
	})
}

// readWarrenObjects reads Warren's own objects about trees.
func (r *reader) readWarrenObjects(ctx context.Context, c *Cluster) error {
	err := gather.ListEach(ctx, r.api, &v1alpha1.SubNamespaceList{}, func(object client.Object) {
		c.Subs[object.GetNamespace()+"/"+object.GetName()] = object.(*v1alpha1.SubNamespace)
	})
	if err != nil {
		return fmt.Errorf("list SubNamespaces: %w", err)
	}
	err = gather.ListEach(ctx, r.api, &v1alpha1.HierarchyConfigurationList{}, func(object client.Object) {
		c.Hierarchies[object.GetNamespace()] = object.(*v1alpha1.HierarchyConfiguration)
	})
	if err != nil {
		return fmt.Errorf("list HierarchyConfigurations: %w", err)
	}
	err = gather.ListEach(ctx, r.api, &v1alpha1.LNamespaceList{}, func(object client.Object) {
		c.LNamespaces[object.GetName()] = object.(*v1alpha1.LNamespace)
	})
	if err != nil {
		return fmt.Errorf("list LNamespaces: %w", err)
	}
	return nil
}

// readConfiguredKinds reads the metadata of all objects of the configured kinds that the API server has.
func (r *reader) readConfiguredKinds(ctx context.Context, c *Cluster) error {
	for _, k := range r.configuration.Propagation.Kinds {
		mapping, err := r.api.RESTMapper().RESTMapping(k.GroupKind())
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return err
		}
		kind := Kind{GroupVersionKind: mapping.GroupVersionKind, Resource: mapping.Resource.Resource,
			Mode: copies.KindMode(k.Mode)}
		err = r.eachMetadata(ctx, kind.GroupVersionKind,
			func(object *metav1.PartialObjectMetadata) { kind.Objects = append(kind.Objects, object) })
		if err != nil {
			return err
		}
		c.Kinds = append(c.Kinds, kind)
	}
	return nil
}

func (r *reader) eachMetadata(ctx context.Context, kind schema.GroupVersionKind,
	do func(*metav1.PartialObjectMetadata)) error {
	err := gather.ListMetadata(ctx, r.api, kind, func(object *metav1.PartialObjectMetadata) {
		object.SetGroupVersionKind(kind)
		object.ManagedFields = nil
		do(object)
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", kind.Kind, err)
	}
	return nil
}

// listPeerObjects returns the objects of a kind, the peer's or not, within scope; served is false where the API server
// doesn't have the kind.
func (r *reader) listPeerObjects(ctx context.Context, group, kind string,
	scope ...client.ListOption) (found []unstructured.Unstructured, served bool, err error) {
	mapping, err := r.api.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: kind})
	if meta.IsNoMatchError(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind + "List"))
	err = gather.ListEach(ctx, r.api, list, func(object client.Object) {
		found = append(found, *object.(*unstructured.Unstructured))
	}, scope...)
	if apierrors.IsNotFound(err) { // the kind was deleted after discovery
		return nil, false, nil
	}
	if err != nil {
		return nil, true, fmt.Errorf("list %s.%s: %w", kind, group, err)
	}
	return found, true, nil
}

// readPeerEngine finds the peer's Deployments and webhooks, and the record of earlier runs.
func (r *reader) readPeerEngine(ctx context.Context, c *Cluster) error {
	if err := r.readDeployments(ctx, c); err != nil {
		return err
	}
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		configurations, _, err := r.listPeerObjects(ctx, "admissionregistration.k8s.io", kind)
		if err != nil {
			return err
		}
		for _, w := range configurations {
			if found, theirs := r.webhooksOfPeer(w); theirs {
				c.Peer.Webhooks = append(c.Peer.Webhooks, found)
			}
		}
	}
	return r.readMigrationRecord(ctx, c)
}

// webhooksOfPeer returns the webhooks of a configuration, and whether the peer serves them. While the peer is at rest,
// they have failure policy Ignore, except those on its own kinds, which have Fail. Objects of these kinds determine
// where namespaces belong, and tenants may write them: at rest nobody may change them.
func (r *reader) webhooksOfPeer(w unstructured.Unstructured) (found Webhooks, theirs bool) {
	found = Webhooks{PartialObjectMetadata: partialMetadataOf(w), Guards: namespaceGuardNames(w)}
	webhooks, _, _ := unstructured.NestedSlice(w.Object, "webhooks")
	for _, item := range webhooks {
		webhook, _ := item.(map[string]any)
		theirs = theirs || nestedText(webhook, "clientConfig", "service", "namespace") == cmp.Or(r.peerNamespace, r.peer.namespace)
		found.Policies = append(found.Policies, nestedText(webhook, "failurePolicy"))
		own := r.judgesOwnKindsAlone(webhook)
		if own {
			found.AtRest = append(found.AtRest, failurePolicyFail)
		} else {
			found.AtRest = append(found.AtRest, failurePolicyIgnore)
		}
		found.Conditions = append(found.Conditions, matchConditionOf(webhook, own && r.peer.holdsNamespaces))
	}
	return found, theirs && strings.HasPrefix(w.GetName(), r.peer.prefix)
}

// namespaceGuardNames returns the names of the webhooks that are asked about Namespaces, "" for others, in their order.
func namespaceGuardNames(w unstructured.Unstructured) (names []string) {
	webhooks, _, _ := unstructured.NestedSlice(w.Object, "webhooks")
	for _, item := range webhooks {
		webhook, _ := item.(map[string]any)
		name := ""
		rules, _, _ := unstructured.NestedSlice(webhook, "rules")
		for _, item := range rules {
			rule, _ := item.(map[string]any)
			resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
			judges := slices.ContainsFunc(resources,
				func(r string) bool { return strings.HasPrefix(r, "*") || strings.HasPrefix(r, "namespaces") })
			if judges && nestedText(rule, "scope") != "Namespaced" {
				name = nestedText(webhook, "name")
			}
		}
		names = append(names, name)
	}
	return names
}

// judgesOwnKindsAlone reports whether a webhook is asked about nothing but objects of the peer's API group.
func (r *reader) judgesOwnKindsAlone(webhook map[string]any) bool {
	rules, _, _ := unstructured.NestedSlice(webhook, "rules")
	for _, item := range rules {
		rule, _ := item.(map[string]any)
		groups, _, _ := unstructured.NestedStringSlice(rule, "apiGroups")
		if len(groups) == 0 || slices.ContainsFunc(groups, func(group string) bool { return group != r.peer.group }) {
			return false
		}
	}
	return len(rules) > 0
}

func partialMetadataOf(u unstructured.Unstructured) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(u.GroupVersionKind())
	m.Namespace, m.Name, m.UID, m.ResourceVersion = u.GetNamespace(), u.GetName(), u.GetUID(), u.GetResourceVersion()
	m.Finalizers = u.GetFinalizers()
	m.Labels, m.Annotations, m.OwnerReferences, m.DeletionTimestamp = u.GetLabels(), u.GetAnnotations(), u.GetOwnerReferences(),
		u.GetDeletionTimestamp()
	return m
}

func (r *reader) readMigrationRecord(ctx context.Context, c *Cluster) error {
	c.Peer.RecordAt = Object{"v1", "ConfigMap", r.operatorNamespace, "warren-migration-" + r.peer.word}
	stored := &corev1.ConfigMap{}
	err := r.api.Get(ctx, client.ObjectKey{Namespace: r.operatorNamespace, Name: c.Peer.RecordAt.Name}, stored)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	record, err := unpackRecord(stored.BinaryData[recordKey])
	if err != nil {
		return fmt.Errorf("%s can't be read (%w): it records how %s ran before the migration, and --undo needs that. "+
			"If an --apply has begun, restore the ConfigMap from a backup. If no --apply has begun, "+
			"delete it: kubectl delete configmap -n %s %s",
			c.Peer.RecordAt, err, r.peer.title, c.Peer.RecordAt.Namespace, c.Peer.RecordAt.Name)
	}
	c.Peer.Record, c.Peer.RecordUID, c.Peer.RecordVersion = record, string(stored.UID), stored.ResourceVersion
	return nil
}

var hncPeer = peer{
	word: "hnc", title: "HNC", namespace: "hnc-system", prefix: "hnc-", group: hncGroup, holdsNamespaces: true,
	copyLabel: struct{ key, value string }{v1alpha1.LabelManagedBy, hncGroup},
	except: ",\n" +
		"but for the ResourceQuotas " + hncQuotaOfNamespace + ": --finish deletes them when Warren's own limit the same",
	labelAdvice: ", from NAME" + hncTreeSuffix + " to NAME" + v1alpha1.TreeLabelSuffix,
	// while this Deployment is stopped, discovery of the API server's kinds is incomplete, and no namespace of the cluster
	// can be deleted
	bystander: "hnc-resourcelist",
	readEstate: func(ctx context.Context, r *reader, c *Cluster) (*Estate, error) {
		found := HNC{}
		served := false
		for kind, into := range map[string]*[]unstructured.Unstructured{
			"SubnamespaceAnchor": &found.Anchors, "HierarchyConfiguration": &found.Hierarchies,
			"HNCConfiguration": &found.Configurations, "HierarchicalResourceQuota": &found.Quotas,
		} {
			objects, here, err := r.listPeerObjects(ctx, hncGroup, kind)
			if err != nil {
				return nil, err
			}
			*into, served = objects, served || here
		}
		if !served && c.Peer.Record == nil {
			return nil, notInstalledError("HNC", hncGroup)
		}
		var err error
		if err = r.readTreeQuotas(ctx, &c.Quotas, client.MatchingFields{metav1.ObjectNameField: hncQuotaOfNamespace}); err != nil {
			return nil, err
		}
		if found.settings, err = settingsOfHNC(c.Peer.Deployments); err != nil {
			return nil, err
		}
		keys := r.configuration.SubNamespaces
		estate := EstateOfHNC(found, c.Namespaces, c.Kinds, AllowedKeys{keys.Labels.Match, keys.Annotations.Match})
		estate.IsGone = !served
		estate.compareFlagsOfHNC(found.settings, r.configuration)
		for _, object := range slices.Concat(found.Anchors, found.Hierarchies) {
			estate.Holding = append(estate.Holding, partialMetadataOf(object))
		}
		return estate, nil
	},
}

var accuratePeer = peer{
	word: "accurate", title: "Accurate", namespace: "accurate", prefix: "accurate-", group: accurateGroup, holdsNamespaces: true,
	needsFile:   true,
	copyLabel:   struct{ key, value string }{v1alpha1.LabelCreatedBy, "accurate"},
	labelAdvice: ", from " + accurateGroup + "/NAME to " + v1alpha1.Domain + "/NAME",
	readEstate: func(ctx context.Context, r *reader, c *Cluster) (*Estate, error) {
		subs, served, err := r.listPeerObjects(ctx, accurateGroup, "SubNamespace")
		if err == nil && !served && c.Peer.Record == nil {
			err = notInstalledError("Accurate", accurateGroup)
		}
		if err != nil {
			return nil, err
		}
		estate, err := EstateOfAccurate(subs, r.peerConfiguration, *c, r.configuration)
		if err != nil {
			return nil, err
		}
		estate.IsGone = !served
		for _, sub := range subs {
			estate.Holding = append(estate.Holding, partialMetadataOf(sub))
		}
		return estate, nil
	},
}

// notInstalledError is the error that this cluster has nothing of the peer called title.
func notInstalledError(title, group string) error {
	return fmt.Errorf("the API server has no kind of %s: %s is not installed here; use --context to choose another cluster", group, title)
}
