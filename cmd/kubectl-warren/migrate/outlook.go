package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// outlook describes the trees after the migration. It is immutable.
type outlook struct {
	// joining holds, by namespace, the places that namespaces can take. after is the forest when all of them have taken
	// these places. end is after with Warren's configuration, the LNamespaces that exist now, and the
	// HierarchyConfigurations and SubNamespaces that will exist.
	joining    map[string]Place
	after, end *forest.Snapshot
	// refused are the namespaces to whose places the user has not agreed.
	refused []string
}

// forecastOutlook returns the namespaces that can take their places, and the resulting forest. It adds a gap to the
// draft for each that can't.
func forecastOutlook(estate *Estate, c Cluster, d *draft) *outlook {
	o := &outlook{joining: map[string]Place{}, after: forest.New(forest.Rules{ProtectedName: c.Rules.ProtectedName})}
	for _, name := range slices.Sorted(maps.Keys(estate.Places)) {
		place := estate.Places[name]
		if c.Namespaces[name] == nil {
			continue
		}
		if !c.isPlaceAgreed(estate, name, place) {
			o.recordUnagreedPlace(name, place, d)
		} else if c.canTakePlace(name, place, d) {
			o.joining[name] = place
		}
	}
	for o.removeRefusedPlaces(estate, c, d) {
	}
	for name := range estate.Tenants {
		if c.Namespaces[name] == nil {
			o.after = o.after.WithNamespace(forest.NamespaceOf(futureRootOf(name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Namespaces)) {
		n := forest.NamespaceOf(c.Namespaces[name])
		if place, joins := o.joining[name]; joins {
			n.Labels = withLabelChanges(n.Labels, place.namespaceLabels())
		}
		o.after = o.after.WithNamespace(n)
	}
	o.end = o.finalForest(c)
	return o
}

// finalForest returns the forest after the migration, with Warren's configuration and the objects of Warren's kinds.
func (o *outlook) finalForest(c Cluster) *forest.Snapshot {
	end := o.after.WithRules(c.Rules)
	for _, lns := range c.LNamespaces {
		end = end.WithTenant(forest.TenantOf(lns))
	}
	for _, sub := range c.Subs {
		end = end.WithSub(forest.SubOf(sub))
	}
	specs := map[string]v1alpha1.HierarchyConfigurationSpec{}
	for namespace, hc := range c.Hierarchies {
		specs[namespace] = hc.Spec
	}
	for name, place := range o.joining {
		if place.Sub != nil && c.Subs[place.Parent+"/"+name] == nil {
			sub := &v1alpha1.SubNamespace{Spec: *place.Sub}
			sub.Namespace, sub.Name = place.Parent, name
			end = end.WithSub(forest.SubOf(sub))
		}
		specs[name] = place.hierarchySpecOn(specs[name])
	}
	for namespace, spec := range specs {
		end = end.WithHierarchy(forest.HierarchyOf(namespace, "", spec))
	}
	return end
}

// hierarchySpecOn returns spec, the spec of an existing HierarchyConfiguration or an empty one, with the settings of
// the place added.
func (p Place) hierarchySpecOn(spec v1alpha1.HierarchyConfigurationSpec) v1alpha1.HierarchyConfigurationSpec {
	spec.AllowCascadingDeletion = spec.AllowCascadingDeletion || p.Cascading
	spec.PropagatedLabels, spec.PropagatedAnnotations = slices.Clone(spec.PropagatedLabels), slices.Clone(spec.PropagatedAnnotations)
	for _, key := range p.Labels {
		spec.PropagatedLabels = append(spec.PropagatedLabels, v1alpha1.MetadataKey(key))
	}
	for _, key := range p.Annotations {
		spec.PropagatedAnnotations = append(spec.PropagatedAnnotations, v1alpha1.MetadataKey(key))
	}
	return spec
}

// canTakePlace reports whether a namespace can take its place, whatever is above it. If not, it adds a gap with the
// reason, except for a namespace that is being deleted.
func (c Cluster) canTakePlace(name string, place Place, d *draft) bool {
	now := c.Namespaces[name]
	switch {
	case now.DeletionTimestamp != nil:
		return false
	case c.Rules.ProtectedName(name):
		d.addDraftGap("Namespace "+name, "it is protected and joins no tree: default, kube-* and Warren's own namespace are always protected, "+
			"other namespaces by protectedNamespaces of the configuration")
		return false
	case now.Labels[v1alpha1.LabelProtected] == v1alpha1.True:
		d.addDraftGap("Namespace "+name, "it is protected by its label and joins no tree: to let it join, run kubectl warren protect "+name+
			" --off")
		return false
	}
	for _, key := range []string{v1alpha1.LabelType, v1alpha1.LabelParent, v1alpha1.LabelTemplate} {
		if value := now.Labels[key]; value != "" && value != place.namespaceLabels()[key] {
			d.addDraftGap("Namespace "+name, fmt.Sprintf("it has a place in Warren already (label %s=%s), and stays there: kubectl warren "+
				"describe %s shows it", key, value, name))
			return false
		}
	}
	return true
}

// removeRefusedPlaces removes the namespaces whose place admission would refuse because of their parent or template,
// and adds a gap for each. It reports whether it removed one: then the caller repeats the call, because the namespaces
// below can't join either.
func (o *outlook) removeRefusedPlaces(estate *Estate, c Cluster, d *draft) (found bool) {
	for _, name := range slices.Sorted(maps.Keys(o.joining)) {
		above := cmp.Or(o.joining[name].Parent, o.joining[name].Template)
		if why := o.obstacleAbove(estate, c, above); why != "" {
			delete(o.joining, name)
			d.addDraftGap("Namespace "+name, fmt.Sprintf("it joins no tree, and Warren doesn't update its copies, because %s; before the "+
				"migration, place it elsewhere in the other operator", why))
			found = true
		}
	}
	return found
}

// obstacleAbove returns why no namespace can join below the namespace called name; "" if one can, or if that namespace
// does not exist yet.
func (o *outlook) obstacleAbove(estate *Estate, c Cluster, name string) string {
	now := c.Namespaces[name]
	if now == nil {
		return ""
	}
	_, joins := o.joining[name]
	_, wanted := estate.Places[name]
	labels := now.Labels
	switch {
	case c.Rules.ProtectedName(name) || labels[v1alpha1.LabelProtected] == v1alpha1.True:
		return name + " is a protected namespace, below which nothing can be"
	case now.DeletionTimestamp != nil:
		return name + " is being terminated"
	case wanted && !joins && labels[v1alpha1.LabelType] == "" && labels[v1alpha1.LabelParent] == "":
		return name + " joins no tree"
	}
	return ""
}

// depthInForest returns the number by which the steps of namespaces are ordered: the distance to the root. For
// templates it is negative, so that they come before the namespaces that reference them. Namespaces without a way to a
// root come last.
func (o *outlook) depthInForest(name string) int {
	if o.joining[name].Type == v1alpha1.TypeTemplate {
		above := 0
		for at := o.joining[name].Template; at != "" && above < len(o.joining); at = o.joining[at].Template {
			above++
		}
		return above - len(o.joining)
	}
	if place := o.after.Place(name); place.InTree() && !place.Halted() {
		return place.Depth()
	}
	return len(o.joining)
}
