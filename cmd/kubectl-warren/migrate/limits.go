package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// treeSize holds the numbers of a tree that its limits bound.
type treeSize struct{ subNamespaces, depth, copies int }

// planTreeLimits adds a gap and an excess for each limit that a tree would exceed. An excess keeps the migration from
// beginning: else admission would refuse a namespace, or the operator would hold back copies, after the other operator
// was stopped. copies counts the copies by tree.
func (p *planner) planTreeLimits(copies map[string]int) {
	sizes := map[string]*treeSize{}
	for name, place := range p.joining {
		in := p.end.Place(name)
		if !in.InTree() || p.Namespaces[name].Labels[v1alpha1.LabelParent] == place.Parent { // roots, and namespaces already in place
			continue
		}
		root := in.Path[0]
		if sizes[root] == nil {
			count, _ := p.end.Descendants(root)
			sizes[root] = &treeSize{subNamespaces: count, copies: copies[root]}
		}
		sizes[root].depth = max(sizes[root].depth, in.Depth())
	}
	for _, root := range slices.Sorted(maps.Keys(sizes)) {
		for _, excess := range sizes[root].exceededLimits(p.limitsOfTree(root)) {
			p.draft.addDraftGap("tree "+root, excess+", before the migration")
			p.draft.excesses = append(p.draft.excesses, "tree "+root+" "+excess)
		}
	}
}

// limitsOfTree returns the limits of the tree of root. If its LNamespace does not exist yet, they include those that it
// will have.
func (p *planner) limitsOfTree(root string) v1alpha1.Limits {
	limits := p.end.Limits(root)
	if spec := p.Tenants[root]; spec.Limits != nil && p.LNamespaces[root] == nil {
		limits.SubNamespaces = cmp.Or(spec.Limits.SubNamespaces, limits.SubNamespaces)
		limits.Depth = cmp.Or(spec.Limits.Depth, limits.Depth)
		limits.Copies = cmp.Or(spec.Limits.Copies, limits.Copies)
	}
	return limits
}

func (s *treeSize) exceededLimits(limits v1alpha1.Limits) (found []string) {
	deepest := int32(forest.MaxDepth)
	for _, bound := range []struct {
		field string
		size  int
		most  *int32
	}{{"subNamespaces", s.subNamespaces, limits.SubNamespaces}, {"depth", s.depth, cmp.Or(limits.Depth, &deepest)},
		{"copies", s.copies, limits.Copies}} {
		if bound.most != nil && bound.size > int(*bound.most) {
			step := fmt.Sprintf("raise spec.limits.%s of the LNamespace or, if that is not set, subNamespaces.limits.%[1]s in the configuration",
				bound.field)
			if bound.field == "depth" && *bound.most >= deepest {
				step = "no limit can be higher, so place namespaces nearer to the root in the other operator"
			}
			found = append(found, fmt.Sprintf("would have %s %d, and at most %d is allowed: %s", bound.field, bound.size, *bound.most, step))
		}
	}
	return found
}

// checkNoLimitExceeded returns an error that names the limits that trees would exceed. The caller checks this before it
// writes anything.
func (p Plan) checkNoLimitExceeded() error {
	if len(p.excesses) == 0 {
		return nil
	}
	return fmt.Errorf("nothing was written, because %s; then give the command again", strings.Join(p.excesses, "; "))
}
