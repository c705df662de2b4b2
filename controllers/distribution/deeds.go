package distribution

import (
	"sync"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/distribute"
)

// deedReasons maps the verbs whose success is reported in Events, because users may miss the object, to the Event's reason.
var deedReasons = map[distribute.Verb]v1alpha1.Reason{
	distribute.Adopt: v1alpha1.ReasonAdopted, distribute.Overwrite: v1alpha1.ReasonOverwrote,
	distribute.Delete: v1alpha1.ReasonRemoved, distribute.HandBack: v1alpha1.ReasonRemoved,
}

// deeds are the successful actions for one distribution that are not reported in Events yet.
type deeds struct {
	mu   sync.Mutex                   // guards done; nothing is called while it is held
	done map[v1alpha1.Reason][]string // namespaces
}

// note adds a successful action in a namespace, if deedReasons has its verb.
func (d *deeds) note(verb distribute.Verb, namespace string) {
	reason, ok := deedReasons[verb]
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done == nil {
		d.done = map[v1alpha1.Reason][]string{}
	}
	d.done[reason] = append(d.done[reason], namespace)
}

// takeAll returns all deeds by reason, and removes them.
func (d *deeds) takeAll() map[v1alpha1.Reason][]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.done
	d.done = nil
	return all
}

// putBack adds deeds that could not be reported, before those that were noted since.
func (d *deeds) putBack(all map[v1alpha1.Reason][]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for reason, names := range d.done {
		if all == nil {
			all = map[v1alpha1.Reason][]string{}
		}
		all[reason] = append(all[reason], names...)
	}
	d.done = all
}
