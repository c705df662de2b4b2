package migrate

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// outlook describes the trees after the migration. It is immutable.
type outlook struct {
	// joining are the places that namespaces can take; after is the forest with all of them.
	joining map[string]Place
	after   *forest.Snapshot
	// refused are the namespaces whose places nobody has agreed to.
	refused []string
}

// foresee returns the namespaces that can take their places, and the resulting forest. It adds a gap to the draft for each that can't.
func foresee(estate *Estate, c Cluster, d *draft) *outlook {
	o := &outlook{joining: map[string]Place{}, after: forest.New(forest.Rules{ProtectedName: c.IsProtected})}
	for name := range estate.Tenants {
		if c.Namespaces[name] == nil {
			o.after = o.after.WithNamespace(forest.NamespaceOf(rootToCome(name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Namespaces)) {
		now := c.Namespaces[name]
		n := forest.NamespaceOf(now)
		place, wanted := estate.Places[name]
		if wanted && !c.isAgreed(estate, name, place) {
			o.refuse(name, place, d)
		} else if wanted && canJoin(name, now, place, c.IsProtected, d) {
			o.joining[name] = place
			n.Labels = relabelled(now.Labels, place.labels())
		}
		o.after = o.after.WithNamespace(n)
	}
	return o
}

// canJoin says whether a namespace can take its place; if not, it adds a gap with the reason.
func canJoin(name string, now *metav1.PartialObjectMetadata, place Place, isProtected func(name string) bool, d *draft) bool {
	labels := now.Labels
	switch {
	case now.DeletionTimestamp != nil:
		return false
	case isProtected(name) || labels[v1alpha1.LabelProtected] == v1alpha1.True:
		d.miss("Namespace "+name, "it is protected and joins no tree: see protectedNamespaces of the configuration, and kubectl warren protect "+name+" --off")
		return false
	}
	for _, key := range []string{v1alpha1.LabelType, v1alpha1.LabelParent, v1alpha1.LabelTemplate} {
		if value := labels[key]; value != "" && value != place.labels()[key] {
			d.miss("Namespace "+name, fmt.Sprintf("it has a place in Warren already (label %s=%s), and stays there: kubectl warren describe %s", key, value, name))
			return false
		}
	}
	return true
}

// depth returns a namespace's distance to its root, by which steps are ordered. Templates come before the namespaces that reference
// them, and namespaces without a way to a root come last.
func (o *outlook) depth(name string) int {
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
