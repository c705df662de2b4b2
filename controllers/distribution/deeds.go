package distribution

import (
	"sync"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/distribute"
)

// deedReasons are the verbs whose success is told in Events, because others may miss the object, or look for it.
var deedReasons = map[distribute.Verb]v1alpha1.Reason{
	distribute.Adopt: v1alpha1.ReasonAdopted, distribute.Overwrite: v1alpha1.ReasonOverwrote,
	distribute.Delete: v1alpha1.ReasonRemoved, distribute.HandBack: v1alpha1.ReasonRemoved,
}

// deeds are what was done for one distribution, and is to be told in Events.
type deeds struct {
	mu   sync.Mutex                   // guards done; nothing is called while it is held
	done map[v1alpha1.Reason][]string // namespaces
}

// note adds what was done in a namespace, if it is to be told.
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

// takeAll returns what is to be told, and takes it for told.
func (d *deeds) takeAll() map[v1alpha1.Reason][]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.done
	d.done = nil
	return all
}

// putBack returns what could not be told, in front of what was done since.
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
