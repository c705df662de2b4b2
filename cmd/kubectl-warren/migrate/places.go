package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// While the other operator is at rest, none of its webhooks checks who places which namespace where. So the user agrees
// to the places before: the record holds the UID of each namespace and of its parent or template, as they were in the
// plan that the user has seen. Any other place ends the run.

// agreedPlaces returns the places that the namespaces can take: by UID of the namespace, what identifyPlaceAbove
// returns for its place.
func (o *outlook) agreedPlaces(c Cluster) map[string]string {
	agreed := map[string]string{}
	for name, place := range o.joining {
		agreed[string(c.Namespaces[name].UID)] = c.identifyPlaceAbove(place)
	}
	return agreed
}

// identifyPlaceAbove returns the UID of a place's parent or template; its name if it does not exist yet; "" if the
// place has neither.
func (c Cluster) identifyPlaceAbove(place Place) string {
	name := cmp.Or(place.Parent, place.Template)
	if now := c.Namespaces[name]; now != nil {
		return string(now.UID)
	}
	return name
}

// placesAgreedByUser returns the places to which the user has agreed, by the record or by the plan that this run has
// shown; nil if the user has agreed to no plan yet.
func (c Cluster) placesAgreedByUser() map[string]string {
	if record := c.Peer.Record; record != nil && record.Places != nil {
		return record.Places
	}
	return c.Agreed
}

// isPlaceAgreed reports whether the user has agreed to the place of a namespace. It is true if the user has agreed to
// no plan yet, and after the last step. The root of a tenant may have been made since the agreement: then it was agreed
// to by name.
func (c Cluster) isPlaceAgreed(estate *Estate, name string, place Place) bool {
	agreed := c.placesAgreedByUser()
	if agreed == nil || c.Peer.Record.isMigrationFinished() {
		return true
	}
	was, known := agreed[string(c.Namespaces[name].UID)]
	_, made := estate.Tenants[place.Parent]
	return known && (was == c.identifyPlaceAbove(place) || made && was == place.Parent)
}

// recordUnagreedPlace records a namespace to whose place the user has not agreed.
func (o *outlook) recordUnagreedPlace(name string, place Place, d *draft) {
	o.refused = append(o.refused, name)
	d.addDraftGap("Namespace "+name, fmt.Sprintf("it is left out, because its place (below %s) was not in the plan to which you agreed: "+
		"remove the other operator's keys from it; "+
		"if the place is right, give --undo and begin again", cmp.Or(place.Parent, place.Template, "no other")))
}

// checkPlacesAgreed returns an error that names the namespaces to whose places the user has not agreed.
func (p Plan) checkPlacesAgreed(peer peer) error {
	if len(p.refused) == 0 {
		return nil
	}
	return fmt.Errorf("some places were not in the plan to which you agreed: those of %s, whose keys of %s were written since. "+
		"Find out who may write these keys, and remove them; if the places are right, kubectl warren migrate %s --undo, and begin again",
		strings.Join(p.refused, ", "), peer.title, peer.word)
}

// Join states which namespaces a plan places below another one.
type Join struct {
	// Below is the parent, or the template; "" for roots and templates.
	Below      string   `json:"below"`
	Namespaces []string `json:"namespaces"`
}

// joinsOfSteps returns the places of the namespaces that are labeled by the steps.
func (o *outlook) joinsOfSteps(steps []Step) []Join {
	below := map[string][]string{}
	for _, step := range steps {
		if place, joins := o.joining[step.Object.Name]; joins && step.Phase == Namespaces {
			above := cmp.Or(place.Parent, place.Template)
			below[above] = append(below[above], step.Object.Name)
		}
	}
	joins := []Join{}
	for _, above := range slices.Sorted(maps.Keys(below)) {
		slices.Sort(below[above])
		joins = append(joins, Join{above, below[above]})
	}
	return joins
}
