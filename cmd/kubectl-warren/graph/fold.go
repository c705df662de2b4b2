package graph

// foldForest returns the forest with at most the given number of levels below the first row of each tree. Node.Below still
// counts the rows that are left out.
func (f *Forest) foldForest(levels int) *Forest {
	some := &Forest{Trees: foldBelow(f.Trees, levels), Counts: f.Counts, Unread: f.Unread}
	return some
}

func foldBelow(nodes []*Node, levels int) []*Node {
	kept := make([]*Node, 0, len(nodes))
	for _, n := range nodes {
		short := *n
		short.Children = nil
		if levels > 0 {
			short.Children = foldBelow(n.Children, levels-1)
		}
		kept = append(kept, &short)
	}
	return kept
}

// isFolded reports whether rows below the node are left out of its children.
func (n *Node) isFolded() bool { return n.Below > 0 && len(n.Children) == 0 }

// rowsByDepth counts the rows of each depth.
func (f *Forest) rowsByDepth() []int {
	var counts []int
	f.Walk(func(_ *Node, depth int) {
		for len(counts) <= depth {
			counts = append(counts, 0)
		}
		counts[depth]++
	})
	return counts
}

// fitLevels returns the forest with at most depth levels below the first row of each tree (all, if negative), and at
// most as many rows as most. If it leaves out levels because of most, levels is the number of levels that it shows;
// otherwise -1. If even the first rows of the trees are too many, it keeps only the first trees; left is the number of
// the other trees.
func (f *Forest) fitLevels(depth, most int) (some *Forest, levels, left int) {
	rows := f.rowsByDepth()
	if depth < 0 || depth >= len(rows) {
		depth = len(rows) - 1
	}
	shown, sum := -1, 0
	for level := 0; level <= depth; level++ {
		if sum += rows[level]; sum > most {
			break
		}
		shown = level
	}
	some = f.foldForest(max(shown, 0))
	if shown == depth {
		return some, -1, 0
	}
	if shown < 0 {
		left = len(some.Trees) - most + 1
		some.Trees = some.Trees[:most-1]
	}
	return some, max(shown, 0), left
}
