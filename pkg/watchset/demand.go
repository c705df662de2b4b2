package watchset

import "iter"

// demand is what needs a part: leases, and the Set itself for the parts that it watches for itself. The Set's lock
// guards it.
type demand struct {
	leases      map[*Lease]bool // true: States enqueues the owner for the part's next settled state, even if that is not new
	controllers map[string]int  // how many leases each controller has on the part
	needed      bool            // the Set itself needs the part
}

func newDemand() demand {
	return demand{leases: map[*Lease]bool{}, controllers: map[string]int{}}
}

func (d *demand) hasNoLeases() bool { return len(d.leases) == 0 && !d.needed }

// addLease adds a lease and reports whether it is the first of its controller. waits reports whether States must
// enqueue the lease's owner for the part's next settled state, even if that is not new.
func (d *demand) addLease(l *Lease, waits bool) (first bool) {
	d.leases[l] = waits
	d.controllers[l.owner.Controller]++
	return d.controllers[l.owner.Controller] == 1
}

func (d *demand) removeLease(l *Lease) {
	delete(d.leases, l)
	if d.controllers[l.owner.Controller]--; d.controllers[l.owner.Controller] == 0 {
		delete(d.controllers, l.owner.Controller)
	}
}

// isLastOfController reports whether no other lease of the lease's controller holds the part.
func (d *demand) isLastOfController(l *Lease) bool { return d.controllers[l.owner.Controller] == 1 }

// isHeldByAutoLease reports whether an Auto lease of a controller has p as its cluster-wide part. p is the part whose
// demand this is.
func (d *demand) isHeldByAutoLease(p *part, controller string) bool {
	for l := range d.leases {
		if l.cover.isClusterWidePart(p) && l.owner.Controller == controller {
			return true
		}
	}
	return false
}

// partsStandingInFor yields each Auto lease whose cluster-wide part is p, with the parts of namespaces that it reads
// from while p is Forbidden. p is the part whose demand this is.
func (d *demand) partsStandingInFor(p *part) iter.Seq2[*Lease, *part] {
	return func(yield func(*Lease, *part) bool) {
		for l := range d.leases {
			if !l.cover.isClusterWidePart(p) {
				continue
			}
			for q := range l.cover.partsStandingIn() {
				if !yield(l, q) {
					return
				}
			}
		}
	}
}
