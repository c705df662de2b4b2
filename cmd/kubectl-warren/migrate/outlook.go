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
	// joining holds the places that namespaces can take. after is the forest when all namespaces have taken them. end is that forest
	// with the configuration applied, and with the HierarchyConfigurations, SubNamespaces and LNamespaces that exist then.
	joining    map[string]Place
	after, end *forest.Snapshot
	// refused are the namespaces whose places nobody has agreed to.
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

// finalForest returns the forest of the end, as the configuration and Warren's own objects shape it.
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

// hierarchySpecOn returns the spec of the HierarchyConfiguration that the place makes of one that is there.
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

// canTakePlace reports whether a namespace can take its place, whatever is above; if not, it adds a gap with the reason.
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
		d.addDraftGap("Namespace "+name, "it is protected by its label and joins no tree: kubectl warren protect "+name+" --off")
		return false
	}
	for _, key := range []string{v1alpha1.LabelType, v1alpha1.LabelParent, v1alpha1.LabelTemplate} {
		if value := now.Labels[key]; value != "" && value != place.namespaceLabels()[key] {
			d.addDraftGap("Namespace "+name, fmt.Sprintf("it has a place in Warren already (label %s=%s), and stays there: kubectl warren "+
				"describe %s", key, value, name))
			return false
		}
	}
	return true
}

// removeRefusedPlaces takes out the namespaces whose place admission would refuse for what is above it, and adds a gap
// for each; it reports whether there was one, with which those below go in the next round.
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

// obstacleAbove returns why nothing can join below the namespace called name; "" if it can, also where it does not exist yet.
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

// depthInForest returns a namespace's distance to its root, by which steps are ordered. Templates come before the namespaces that reference
// them, and namespaces without a way to a root come last.
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
