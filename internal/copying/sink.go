package copying

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/pkg/watchset"
)

// Sink turns what a watch shows of objects of type O into Inputs, and applies them. It implements watchset.Sink.
type Sink[I any, O client.Object] struct {
	Apply func(I)
	// Listed, Seen, Left and Changed return the Inputs for the calls of Replace, Put, Gone and State.
	Listed     func(namespace, resourceVersion string, all []O) I
	Seen, Left func(O) I
	Changed    func(namespace string, now watchset.Status) I
	// Keep removes from an object what Listed, Seen and Left don't read; nil keeps all.
	Keep func(O) O
}

// Trim implements watchset.Trimmer.
func (s *Sink[I, O]) Trim(object client.Object) client.Object {
	if of, typed := object.(O); typed && s.Keep != nil {
		return s.Keep(of)
	}
	return object
}

// Replace implements watchset.Sink, and so do Put, Gone and State.
func (s *Sink[I, O]) Replace(namespace, resourceVersion string, all []client.Object) {
	objects := make([]O, 0, len(all))
	for _, object := range all {
		objects = append(objects, object.(O))
	}
	s.Apply(s.Listed(namespace, resourceVersion, objects))
}

// Put implements watchset.Sink.
func (s *Sink[I, O]) Put(object client.Object) { s.Apply(s.Seen(object.(O))) }

// Gone implements watchset.Sink.
func (s *Sink[I, O]) Gone(object client.Object) { s.Apply(s.Left(object.(O))) }

// State implements watchset.Sink.
func (s *Sink[I, O]) State(namespace string, now watchset.Status) { s.Apply(s.Changed(namespace, now)) }
