package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// HNC holds the objects of the Hierarchical Namespace Controller, by kind, and the settings of its flags.
type HNC struct {
	Anchors, Hierarchies, Configurations, Quotas []unstructured.Unstructured

	settings hncSettings
}

// HNC's API group, keys and modes, as its documentation names them.
const (
	hncGroup            = "hnc.x-k8s.io"
	hncInheritedFrom    = hncGroup + "/inherited-from"
	hncSubnamespaceOf   = hncGroup + "/subnamespace-of"
	hncTreeSuffix       = ".tree." + hncGroup + "/depth"
	hncSelect           = "propagate." + hncGroup + "/select"
	hncTreeSelect       = "propagate." + hncGroup + "/treeSelect"
	hncNone             = "propagate." + hncGroup + "/none"
	hncAll              = "propagate." + hncGroup + "/all"
	hncPropagate        = "Propagate"
	hncAllowPropagate   = "AllowPropagate"
	hncRemove           = "Remove"
	hncIgnore           = "Ignore"
	hncQuotaOfNamespace = "hrq." + hncGroup
)

// hncResource is a kind that HNC is configured for.
type hncResource struct{ group, resource, mode string }

// EstateOfHNC returns the Estate that HNC's objects describe. allowed are the labels and annotations that a
// SubNamespace may set.
func EstateOfHNC(peer HNC, namespaces map[string]*metav1.PartialObjectMetadata, kinds []Kind,
	allowed AllowedKeys) *Estate {
	e := newEmptyEstate()
	e.placeHNCNamespaces(peer, namespaces, allowed)
	e.configurationOfHNC(peer, kinds)
	for _, quota := range peer.Quotas {
		hard, _, _ := unstructured.NestedMap(quota.Object, "spec", "hard")
		_, scoped, _ := unstructured.NestedFieldNoCopy(quota.Object, "spec", "scopeSelector")
		e.TreeQuotas = append(e.TreeQuotas, treeQuota{treeQuotaNamed(quota.GetNamespace(), quota.GetName()), hard, scoped})
	}
	modes, above := modesOfHNC(peer), e.namespacesAbove()
	for _, kind := range kinds {
		mode := modes[schema.GroupResource{Group: kind.Group, Resource: kind.Resource}]
		for _, object := range kind.Objects {
			if from := object.Labels[hncInheritedFrom]; from != "" {
				e.Copies[kind.slotOfObject(object)] = from
				continue
			}
			e.recordHNCSource(kind, object, mode, peer.settings, above)
		}
	}
	return e
}

// placeHNCNamespaces adds the places of the namespaces in HNC's trees. HNC's HierarchyConfigurations, or else
// annotation subnamespace-of, name the parents; anchors own namespaces.
func (e *Estate) placeHNCNamespaces(peer HNC, namespaces map[string]*metav1.PartialObjectMetadata,
	allowed AllowedKeys) {
	hierarchies := map[string]unstructured.Unstructured{}
	for _, hc := range peer.Hierarchies {
		hierarchies[hc.GetNamespace()] = hc
	}
	parents := map[string]string{}
	for name, n := range namespaces {
		parent := n.Annotations[hncSubnamespaceOf]
		if hc, ok := hierarchies[name]; ok && nestedText(hc.Object, "spec", "parent") != "" {
			parent = nestedText(hc.Object, "spec", "parent")
		}
		switch {
		case parent == "":
		case peer.settings.leavesAlone(name) || peer.settings.leavesAlone(parent):
			e.addEstateGap("Namespace "+name, "it joins no tree, because HNC's flag --excluded-namespace or --included-namespace-regex "+
				"excludes it or its parent "+parent)
		default:
			parents[name] = parent
		}
	}
	children := map[string]bool{}
	for _, parent := range parents {
		children[parent] = true
	}
	owned := map[string]unstructured.Unstructured{}
	for _, anchor := range peer.Anchors {
		owned[anchor.GetNamespace()+"/"+anchor.GetName()] = anchor
	}
	for _, name := range slices.Sorted(maps.Keys(namespaces)) {
		parent, below := parents[name]
		hc, configured := hierarchies[name]
		if !below && !children[name] {
			continue
		}
		if isInParentCycle(parents, name) {
			e.addEstateGap("Namespace "+name, "its ancestors in HNC form a cycle: correct the parent of one of them in HNC, then plan again")
			continue
		}
		place := Place{Type: v1alpha1.TypeRoot}
		if below {
			place = Place{Parent: parent}
			if anchor, ok := owned[parent+"/"+name]; ok && namespaces[name].Annotations[hncSubnamespaceOf] == parent {
				place.Sub = e.subNamespaceSpecOf("SubnamespaceAnchor", &anchor, keyValuePairs(anchor, "labels"), keyValuePairs(anchor, "annotations"),
					allowed)
			}
		}
		if configured {
			place.Cascading, _, _ = unstructured.NestedBool(hc.Object, "spec", "allowCascadingDeletion")
			place.Labels, place.Annotations = listedKeysOf(hc, "labels"), listedKeysOf(hc, "annotations")
		}
		e.Places[name] = place
	}
}

// isInParentCycle reports whether name is in a cycle of parents, or below one.
func isInParentCycle(parents map[string]string, name string) bool {
	seen := map[string]bool{}
	for at, ok := name, true; ok; at, ok = parents[at] {
		if seen[at] {
			return true
		}
		seen[at] = true
	}
	return false
}

// keyValuePairs returns a list in spec as a map. Each item of the list has a key and a value.
func keyValuePairs(object unstructured.Unstructured, field string) map[string]string {
	pairs := map[string]string{}
	list, _, _ := unstructured.NestedSlice(object.Object, "spec", field)
	for _, item := range list {
		if pair, ok := item.(map[string]any); ok {
			pairs[nestedText(pair, "key")] = nestedText(pair, "value")
		}
	}
	return pairs
}

func listedKeysOf(object unstructured.Unstructured, field string) []string {
	return slices.Sorted(maps.Keys(keyValuePairs(object, field)))
}

func nestedText(object map[string]any, fields ...string) string {
	value, _, _ := unstructured.NestedString(object, fields...)
	return value
}

// resourcesOfHNC returns the kinds that HNC is configured for. HNC always propagates Roles and RoleBindings.
func resourcesOfHNC(peer HNC) []hncResource {
	resources := []hncResource{{"rbac.authorization.k8s.io", "roles", hncPropagate},
		{"rbac.authorization.k8s.io", "rolebindings", hncPropagate}}
	for _, configuration := range peer.Configurations {
		list, _, _ := unstructured.NestedSlice(configuration.Object, "spec", "resources")
		for _, item := range list {
			if r, ok := item.(map[string]any); ok {
				resources = append(resources, hncResource{nestedText(r, "group"), nestedText(r, "resource"), nestedText(r, "mode")})
			}
		}
	}
	return resources
}

func modesOfHNC(peer HNC) map[schema.GroupResource]string {
	modes := map[schema.GroupResource]string{}
	for _, r := range resourcesOfHNC(peer) {
		modes[schema.GroupResource{Group: r.group, Resource: r.resource}] = r.mode
	}
	return modes
}

// counterparts has the mode of Warren for each of HNC's modes, except Ignore.
var counterparts = map[string]copies.KindMode{hncPropagate: copies.All, hncAllowPropagate: copies.OptIn,
	hncRemove: copies.Remove}

// configurationOfHNC compares HNC's configuration with the kinds that Warren is configured for, and adds a gap for each
// difference.
func (e *Estate) configurationOfHNC(peer HNC, kinds []Kind) {
	modes := modesOfHNC(peer)
	for _, kind := range kinds {
		if name := (schema.GroupResource{Group: kind.Group, Resource: kind.Resource}); modes[name] == "" &&
			kind.Mode == copies.All {
			e.addEstateGap(fmt.Sprintf("objects of %s", name),
				"HNC copies none of them, but propagation.kinds has the kind in mode All, so Warren would copy them: set mode OptIn, or "+
					"remove the kind")
		}
	}
	for _, r := range resourcesOfHNC(peer) {
		name := schema.GroupResource{Group: r.group, Resource: r.resource}
		i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Group == r.group && k.Resource == r.resource })
		wanted := counterparts[r.mode]
		switch {
		case wanted == "":
			if i >= 0 && r.mode == hncIgnore && kinds[i].Mode == copies.All {
				e.addEstateGap(fmt.Sprintf("mode Ignore of %s", name),
					"propagation.kinds has the kind in mode All, so Warren would copy its objects: remove the kind")
			}
		case i < 0:
			e.addEstateGap(fmt.Sprintf("mode %s of %s", r.mode, name),
				fmt.Sprintf("its copies stay, but Warren doesn't update them. Before the migration, add the kind to "+
					"propagation.kinds in mode %s, and apply what `manager manifests --config FILE` prints", wanted))
		case kinds[i].Mode == copies.OptIn && wanted == copies.All:
			e.addEstateGap(fmt.Sprintf("mode %s of %s", r.mode, name),
				"propagation.kinds has it in mode OptIn: the present sources get label "+v1alpha1.LabelPropagate+", and later objects are copied "+
					"only with this label; to copy all, set mode All")
		case kinds[i].Mode != wanted:
			e.addEstateGap(fmt.Sprintf("mode %s of %s", r.mode, name),
				fmt.Sprintf("propagation.kinds has it in mode %s: set mode %s", kinds[i].Mode, wanted))
		}
	}
}

// recordHNCSource records an object as a source, if Warren copies it as HNC does only with a label or a selector. above
// is what namespacesAbove returns.
func (e *Estate) recordHNCSource(kind Kind, object *metav1.PartialObjectMetadata, mode string, settings hncSettings,
	above map[string]bool) {
	if _, placed := e.Places[object.Namespace]; !placed || mode != hncPropagate && mode != hncAllowPropagate ||
		object.Labels[v1alpha1.LabelInheritedFrom] != "" || object.Labels[v1alpha1.LabelAccess] != "" {
		return
	}
	if (copies.Rules{}).Excluded(kind.slotOfObject(object), object, "") != "" {
		return
	}
	notes := object.Annotations
	none, _ := strconv.ParseBool(notes[hncNone])
	none = none || settings.neverCopies(object)
	all, _ := strconv.ParseBool(notes[hncAll])
	selector := selectorOfHNC(notes)
	opted := all || selector != ""
	switch {
	case none && kind.Mode == copies.All:
		e.Sources[kind.slotOfObject(object)] = Source{Mode: v1alpha1.ModeNone}
	case none, mode == hncAllowPropagate && !opted:
		if kind.Mode == copies.All {
			e.Sources[kind.slotOfObject(object)] = Source{Mode: v1alpha1.ModeNone}
		}
	case selector != "" || kind.Mode != copies.All && above[object.Namespace]:
		e.Sources[kind.slotOfObject(object)] = Source{Mode: v1alpha1.ModeUpdate, Select: selector}
	}
}

// selectorOfHNC joins HNC's two selectors into one: the one by labels, and the list of trees, whose names become
// Warren's tree labels.
func selectorOfHNC(notes map[string]string) string {
	var parts []string
	if s := strings.ReplaceAll(notes[hncSelect], hncTreeSuffix, v1alpha1.TreeLabelSuffix); s != "" {
		parts = append(parts, s)
	}
	for name := range strings.SplitSeq(notes[hncTreeSelect], ",") {
		if name = strings.TrimSpace(name); name != "" {
			parts = append(parts, name+v1alpha1.TreeLabelSuffix)
		}
	}
	return strings.Join(parts, ",")
}
