package watchset

import "iter"

// demand is who needs a part: leases, and the Set itself for the parts that it watches for itself. The Set's lock guards it.
type demand struct {
	leases      map[*Lease]bool // true: States hasn't enqueued its owner since the lease got the part
	controllers map[string]int  // how many leases each controller has on the part
	needed      bool            // the Set itself needs the part
}

func newDemand() demand {
	return demand{leases: map[*Lease]bool{}, controllers: map[string]int{}}
}

func (d *demand) idle() bool { return len(d.leases) == 0 && !d.needed }

// add adds a lease and says whether it is the first of its controller. waits says whether States is to enqueue its owner for the
// part's next settled state, whatever that is.
func (d *demand) add(l *Lease, waits bool) (first bool) {
	d.leases[l] = waits
	d.controllers[l.owner.Controller]++
	return d.controllers[l.owner.Controller] == 1
}

func (d *demand) remove(l *Lease) {
	delete(d.leases, l)
	if d.controllers[l.owner.Controller]--; d.controllers[l.owner.Controller] == 0 {
		delete(d.controllers, l.owner.Controller)
	}
}

// isLast says whether no other lease of the lease's controller holds the part.
func (d *demand) isLast(l *Lease) bool { return d.controllers[l.owner.Controller] == 1 }

// autoLeased says whether an Auto lease of a controller has p as its cluster-wide part. p is the part in demand.
func (d *demand) autoLeased(p *part, controller string) bool {
	for l := range d.leases {
		if l.cover.switchesFrom(p) && l.owner.Controller == controller {
			return true
		}
	}
	return false
}

// standIns yields the parts of namespaces that Auto leases read from while p, their cluster-wide part, is Forbidden. p is the part
// in demand.
func (d *demand) standIns(p *part) iter.Seq2[*Lease, *part] {
	return func(yield func(*Lease, *part) bool) {
		for l := range d.leases {
			if !l.cover.switchesFrom(p) {
				continue
			}
			for q := range l.cover.standIns() {
				if !yield(l, q) {
					return
				}
			}
		}
	}
}
