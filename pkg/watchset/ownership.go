package watchset

// ownership records which leases each owner holds, and numbers sessions. The Set's lock guards it.
type ownership struct {
	records  map[Owner]*holdings
	sequence uint64 // number of the last session, or call of Set.Acquire
}

// holdings are the leases of an owner.
type holdings struct {
	leases map[requestKey]*Lease
	latest uint64 // the sequence number of the owner's latest session
}

// nextSessionNumber returns the number of a session, or call of Set.Acquire, that begins now.
func (o *ownership) nextSessionNumber() uint64 {
	o.sequence++
	return o.sequence
}

// holdingsOfOwner returns the record of an owner's leases, a new one if the owner holds none. The caller adds a lease
// to it.
func (o *ownership) holdingsOfOwner(owner Owner) *holdings {
	held := o.records[owner]
	if held == nil {
		held = &holdings{leases: map[requestKey]*Lease{}}
		o.records[owner] = held
	}
	return held
}

// recordSession records that an owner who holds leases has begun, or used, the session of this number.
func (o *ownership) recordSession(owner Owner, sequence uint64) {
	if held := o.records[owner]; held != nil {
		held.latest = max(held.latest, sequence)
	}
}

// removeHeldLease removes a lease. With the owner's last lease it also removes the owner's record.
func (o *ownership) removeHeldLease(l *Lease) {
	held := o.records[l.owner]
	if held == nil || held.leases[l.key] != l {
		return
	}
	if delete(held.leases, l.key); len(held.leases) == 0 {
		delete(o.records, l.owner)
	}
}

// leasesBeforeSession returns an owner's leases that were acquired last before the session of this number; none if a
// later session exists.
func (o *ownership) leasesBeforeSession(owner Owner, sequence uint64) []*Lease {
	held := o.records[owner]
	if held == nil || held.latest > sequence {
		return nil
	}
	var before []*Lease
	for _, l := range held.leases {
		if l.touched < sequence {
			before = append(before, l)
		}
	}
	return before
}
