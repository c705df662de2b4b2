package copies

import "iter"

// Maker is what makes an object a source of copies. The planner treats all sources alike; where makers differ (which objects
// are sources, in which namespaces they are wanted, which of several comes first), this file says so.
type Maker int8

// The makers.
const (
	Labelled Maker = iota // the object's owner set the label propagate
	Covered               // the object's kind is in mode All
)

// candidates yields the sources that may be wanted at the slot, each with the slot where it stands, in the order of precedence: those in the
// namespaces on the way from the root, the topmost first.
func (p *planner) candidates() iter.Seq2[Slot, *Source] {
	return func(yield func(Slot, *Source) bool) {
		for _, from := range p.sources.Names {
			at := p.slot.At(from)
			if s := p.world.Sources.At(at); s != nil && !yield(at, s) {
				return
			}
		}
	}
}
