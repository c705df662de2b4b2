package copies_test

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/warren-tenancy/warren/internal/copies"
)

// The functions below compute how a cluster should end, by the text of the specification, with plain recursion over its namespaces. They
// check the planner independently, and share no code with it.

// ancestors returns the namespaces from the root to a sub-namespace or root, itself included; nil if it has no path to a root.
func (c *cluster) ancestors(name string, seen ...string) []string {
	l, ok := c.lands[name]
	if !ok || l.protected || slices.Contains(seen, name) || len(seen) > 0 && l.terminating || l.typed != "" && l.parent != "" {
		return nil
	}
	if l.parent == "" {
		if l.typed != "root" {
			return nil
		}
		return []string{name}
	}
	if up := c.ancestors(l.parent, append(seen, name)...); up != nil {
		return append(slices.Clone(up), name)
	}
	return nil
}

// templates returns the templates above a namespace, the outermost first. known is false if one of them is missing or is no sound template.
func (c *cluster) templates(name string, seen ...string) (chain []string, known bool) {
	up := c.lands[name].template
	if up == "" {
		return nil, true
	}
	t, ok := c.lands[up]
	if !ok || t.terminating || t.protected || t.typed != "template" || t.parent != "" || up == name || slices.Contains(seen, up) {
		return []string{up}, false
	}
	above, known := c.templates(up, append(seen, name)...)
	return append(slices.Clone(above), up), known
}

// way returns path(N) of the specification without N itself. ok is false if nothing may be written or deleted in the namespace.
func (c *cluster) way(name string) (way []string, ok bool) {
	l, exists := c.lands[name]
	if !exists || l.terminating || l.protected || l.typed != "" && l.parent != "" {
		return nil, false
	}
	top := name
	if l.parent != "" || l.typed == "root" {
		path := c.ancestors(name)
		if path == nil {
			return nil, false
		}
		top, way = path[0], path[:len(path)-1]
	}
	if chain, known := c.templates(top); known {
		way = slices.Concat(chain, way)
	}
	return way, true
}

// frozen reports whether a copy from namespace from stays, because the templates of the tree are not known.
func (c *cluster) frozen(name, from string) bool {
	top := name
	if path := c.ancestors(name); path != nil {
		top = path[0]
	}
	way, _ := c.way(name)
	chain, known := c.templates(top)
	l, exists := c.lands[from]
	return !known && !slices.Contains(way, from) && (slices.Contains(chain, from) || !exists || l.typed == "template")
}

func (c *cluster) selected(o origin, name string) bool {
	seen := labels.Set{"tier": c.lands[name].tier}
	for i, ancestor := range slices.Backward(c.ancestors(name)) {
		seen[ancestor+".tree.tenancy.warren.dev/depth"] = strconv.Itoa(len(c.ancestors(name)) - 1 - i)
	}
	selector, _ := labels.Parse(o.selector)
	return selector.Matches(seen)
}

// wanted returns the source that a slot should follow. still means that nothing may be written or deleted there.
func (c *cluster) wanted(slot copies.Slot) (from copies.Slot, found, still bool) {
	way, _ := c.way(slot.Namespace)
	for _, namespace := range way {
		from := slot.At(namespace)
		o, ok := c.origins[from]
		if !ok || o.mode == none && !o.invalid {
			continue
		}
		if o.invalid || o.terminating {
			return from, false, true
		}
		if !o.excluded && c.selected(o, slot.Namespace) {
			return from, true, false
		}
	}
	return copies.Slot{}, false, false
}

// expected returns all objects as they should be once the operator has nothing left to do.
func (c *cluster) expected() map[copies.Slot]stored {
	end := maps.Clone(c.objects)
	for _, slot := range slots {
		o, stands := c.objects[slot]
		if stands && o.Terminating && !o.Held {
			delete(end, slot)
			stands = false
		}
		if _, ok := c.way(slot.Namespace); !ok || !c.synced[slot.Kind] || stands && o.Terminating {
			continue
		}
		if o, stands = c.rid(slot, o, stands); stands {
			end[slot] = o
		} else {
			delete(end, slot)
		}
		stay := func(old copies.Slot) bool { return c.objects[old].Held || !c.synced[old.Kind] }
		if o.Terminating || c.modes[slot.Kind] == copies.Remove || slices.ContainsFunc(c.oldCopies(slot.Namespace), stay) {
			continue // nothing new is written while a copy that must go can't go
		}
		if o, stands = c.filled(slot, o, stands); stands {
			end[slot] = o
		}
	}
	return end
}

// rid returns the object at slot once it is deleted, if it must go.
func (c *cluster) rid(slot copies.Slot, o stored, stands bool) (stored, bool) {
	if !stands || !o.Ours || o.Hash.Mode != update {
		return o, stands
	}
	way, _ := c.way(slot.Namespace)
	above := slices.Contains(way, o.From)
	goes := c.modes[slot.Kind] == copies.Remove || !above && !c.frozen(slot.Namespace, o.From)
	if !goes && above {
		_, found, still := c.wanted(slot)
		_, there := c.origins[slot.At(o.From)]
		goes = !found && !still && (there || !c.doubt[slot.At(o.From)])
	}
	if o.Terminating = goes; goes && !o.Held {
		return stored{}, false
	}
	return o, true
}

// filled returns the object at slot once the wanted copy is written, if it may be.
func (c *cluster) filled(slot copies.Slot, o stored, stands bool) (stored, bool) {
	from, found, _ := c.wanted(slot)
	if _, lower := c.origins[slot]; !found || lower {
		return o, stands
	}
	source := c.origins[from]
	now := stored{From: from.Namespace, Ours: true, Seen: true, Held: o.Held,
		Hash: copies.Hash{Mode: source.mode, Place: copies.PlaceOf(slot, from.Namespace), Content: source.content(from)}}
	way, _ := c.way(slot.Namespace)
	_, there := c.origins[slot.At(o.From)]
	switch {
	case !stands:
		return now, true
	case !o.Ours:
		return o, true
	case o.Hash.Mode == create:
		if source.mode == create || o.From != from.Namespace {
			return o, true
		}
	case !slices.Contains(way, o.From), !there && c.doubt[slot.At(o.From)]:
		return o, true
	case o.Hash == now.Hash && !o.Drifted:
		return o, true
	}
	return now, true
}
