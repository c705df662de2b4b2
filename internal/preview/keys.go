package preview

import (
	"slices"

	"github.com/warren-tenancy/warren/internal/forest"
)

// planKeys plans one write for each Namespace whose labels or annotations must change. These also give the namespace its place in a tree.
// It returns the forest as it is after the writes.
func planKeys(start *forest.Snapshot) (after *forest.Snapshot, writes []Write) {
	after = start
	names := slices.Sorted(start.All())
	for range forest.MaxDepth { // each round may reach one level deeper in a tree
		before := after
		for _, name := range names {
			if change := forest.DesiredChange(after, name); !change.Empty() {
				after = after.WithNamespace(after.Namespace(name).With(change))
			}
		}
		if after == before {
			break
		}
	}
	for _, name := range names {
		old, now := start.Namespace(name), after.Namespace(name)
		if change := old.ChangeTo(now); !now.Terminating && !change.Empty() {
			writes = append(writes, Write{
				Verb: Update, Kind: "Namespace", Name: name, Tenant: tenantOf(after, name),
				Reason: describePlacing(start, after, name) + describeChange(change),
			})
		}
	}
	return after, writes
}

// describePlacing returns how the reason of a write begins that gives a namespace the parent that its HierarchyConfiguration asks for; ""
// for other writes.
func describePlacing(start, after *forest.Snapshot, name string) string {
	r := forest.RequestOf(start, name)
	switch {
	case !r.Asked || forest.RequestOf(after, name).Asked:
		return ""
	case r.Parent == "":
		return "its HierarchyConfiguration asks for no parent: "
	}
	return "its HierarchyConfiguration asks for parent " + r.Parent + ": "
}
