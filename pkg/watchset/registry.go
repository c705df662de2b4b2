package watchset

import "slices"

// registry holds a Set's parts, except those that the Set watches for itself. The Set's lock guards it.
type registry struct {
	all      map[partKey]*part
	local    map[string]map[*part]struct{} // by namespace; parts without a namespace are under ""
	admitted int                           // how many parts count against MaxInformers
}

func newRegistry() registry {
	return registry{all: map[partKey]*part{}, local: map[string]map[*part]struct{}{}}
}

func (r *registry) addPart(p *part) {
	r.all[p.selection.key] = p
	if r.local[p.selection.key.namespace] == nil {
		r.local[p.selection.key.namespace] = map[*part]struct{}{}
	}
	r.local[p.selection.key.namespace][p] = struct{}{}
}

func (r *registry) removePart(p *part) {
	delete(r.all, p.selection.key)
	if delete(r.local[p.selection.key.namespace], p); len(r.local[p.selection.key.namespace]) == 0 {
		delete(r.local, p.selection.key.namespace)
	}
}

// sortedParts returns all parts in alphabetical order: by resource, then by scope, then by form and selectors.
func (r *registry) sortedParts() []*part {
	all := make([]*part, 0, len(r.all))
	for _, p := range r.all {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *part) int { return a.selection.key.comparePartKeys(b.selection.key) })
	return all
}

func (r *registry) recordAdmission(p *part) {
	r.admitted++
	p.admitted = true
}
