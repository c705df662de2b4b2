package preview

import "github.com/warren-tenancy/warren/internal/forest"

// draft is the forest in memory to which a settlement applies each planned write.
type draft struct {
	// start is the forest as it was read, f the one after the writes.
	start, f *forest.Snapshot
	// told are the namespaces after the writes in the plan so far, if these differ from start.
	told map[string]*forest.Namespace
}

func newDraft(start *forest.Snapshot) draft {
	return draft{start: start, f: start, told: map[string]*forest.Namespace{}}
}

// subs returns all SubNamespaces, in no order.
func (d *draft) subs() []*forest.Sub {
	var all []*forest.Sub
	for name := range d.f.All() {
		all = append(all, d.f.Subs(name)...)
	}
	return all
}

// isEnding says whether a SubNamespace is being deleted, or will be with the namespace in which it stands.
func (d *draft) isEnding(sub *forest.Sub) bool {
	n := d.f.Namespace(sub.Parent)
	return sub.Deleting || n != nil && n.Terminating
}

// settleKeys sets, in the planned forest, the labels and annotations that a namespace should have, and says whether any changed.
// planKeys adds the writes to the plan.
func (d *draft) settleKeys(name string) bool {
	change := d.f.Desired(name)
	if change.Empty() {
		return false
	}
	d.f = d.f.WithNamespace(d.f.Namespace(name).With(change))
	return true
}

// replace updates a namespace in the planned forest after a write that the caller adds to the plan itself.
func (d *draft) replace(n *forest.Namespace) {
	d.f, d.told[n.Name] = d.f.WithNamespace(n), n
}

// toldOf returns a namespace as it is after the writes in the plan so far.
func (d *draft) toldOf(name string) *forest.Namespace {
	if n := d.told[name]; n != nil {
		return n
	}
	return d.start.Namespace(name)
}

// describePlacing returns the beginning of the reason of a write that gives a namespace the parent that its HierarchyConfiguration
// asks for.
func (d *draft) describePlacing(name string) string {
	if r := d.start.Request(name); r.Asked && !d.f.Request(name).Asked {
		return "its HierarchyConfiguration asks for " + describePlace(r.Parent) + ": "
	}
	return ""
}

func describePlace(parent string) string {
	if parent == "" {
		return "no parent"
	}
	return "parent " + parent
}
