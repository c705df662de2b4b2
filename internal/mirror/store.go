package mirror

import (
	"cmp"
	"iter"
	"slices"
)

// Store holds the objects of a Table. A part that packs what it keeps, or has indexes of it, hands its own over to NewOver.
type Store[V any] interface {
	// At returns the object at a place, and its Mark; nil if there is none.
	At(Place) (*V, Mark)
	// In returns the objects in a namespace in the order of names, or those Everywhere in no order. The caller may drop the one that it
	// was given.
	In(namespace string) iter.Seq2[Place, *V]
	// Put adds or replaces an object, Drop removes one.
	Put(Place, Mark, V)
	Drop(Place)
}

// shelf is the Store of a Table that was given none: by namespace, in the order of names.
type shelf[V any] map[string][]*entry[V]

type entry[V any] struct {
	name  string
	mark  Mark
	value V
}

func (s shelf[V]) search(p Place) (at int, found bool) {
	return slices.BinarySearchFunc(s[p.Namespace], p.Name, func(one *entry[V], name string) int { return cmp.Compare(one.name, name) })
}

func (s shelf[V]) At(p Place) (*V, Mark) {
	if at, found := s.search(p); found {
		one := s[p.Namespace][at]
		return &one.value, one.mark
	}
	return nil, Mark{}
}

func (s shelf[V]) In(namespace string) iter.Seq2[Place, *V] {
	return func(yield func(Place, *V) bool) {
		if namespace != Everywhere {
			s.yieldOf(namespace, yield)
			return
		}
		for in := range s {
			if !s.yieldOf(in, yield) {
				return
			}
		}
	}
}

func (s shelf[V]) yieldOf(namespace string, yield func(Place, *V) bool) (goesOn bool) {
	for _, one := range slices.Clone(s[namespace]) {
		if !yield(Place{Namespace: namespace, Name: one.name}, &one.value) {
			return false
		}
	}
	return true
}

func (s shelf[V]) Put(p Place, mark Mark, value V) {
	at, found := s.search(p)
	if one := (entry[V]{p.Name, mark, value}); found {
		*s[p.Namespace][at] = one
	} else {
		s[p.Namespace] = slices.Insert(s[p.Namespace], at, &one)
	}
}

func (s shelf[V]) Drop(p Place) {
	at, found := s.search(p)
	if !found {
		return
	}
	if s[p.Namespace] = slices.Delete(s[p.Namespace], at, at+1); len(s[p.Namespace]) == 0 {
		delete(s, p.Namespace)
	}
}
