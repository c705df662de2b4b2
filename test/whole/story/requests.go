package story

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/warren-tenancy/warren/test/whole/api"
	"github.com/warren-tenancy/warren/test/whole/oracle"
)

// memberships are the groups of people. mallory is on no list and in no group.
var memberships = map[string][]string{"carol": {"oncall"}, "dave": {"oncall", "leads"}, "erin": {"leads"}}

const stranger, tenants = "mallory", 3

// watchRequests has an oracle look at who may become a temporary sudoer, after each step that may have changed that and after some others.
func (h *History) watchRequests(seed uint64) {
	names := make([]string, 0, tenants)
	for i := range tenants {
		names = append(names, tenantName(i))
	}
	h.requests = oracle.NewRequests(h.Sim.Server, seed, append(slices.Clone(people), stranger), memberships, names)
	bindings, seen := h.Sim.Server.Kind(rbac, "rolebindings"), 0
	h.Sim.AfterStep = func() {
		now := h.Sim.Server.Now()
		setSince(&h.requests.OperatorSince, h.Sim.IsOperatorWell(), now)
		setSince(&h.requests.ManagerSince, !h.Sim.IsManagerAway(), now)
		if n := len(bindings.Log()); n > seen {
			for _, e := range bindings.Log()[seen:] {
				if e.New.GetNamespace() == sudoNamespace {
					h.requests.AskAll()
					break
				}
			}
			seen = n
		}
		h.Sim.IsClose = h.requests.Look()
	}
}

const sudoNamespace = "warren-sudo"

// setSince keeps since when something holds; zero: it doesn't.
func setSince(since *time.Time, holds bool, now time.Time) {
	switch {
	case !holds:
		*since = time.Time{}
	case since.IsZero():
		*since = now
	}
}

func tenantName(n int) string { return fmt.Sprint("t", n%tenants) }

// drawSubjects returns some of the people, and sometimes a group.
func drawSubjects(n int) []any {
	subjects := drawPeople(n)
	if n>>5&1 == 1 {
		subjects = append(subjects, map[string]any{"kind": "Group", "name": []any{"oncall", "leads"}[n>>6&1]})
	}
	return subjects
}

// offerRequests changes who of a tenant may ask for sudo, and who approves.
func (h *History) offerRequests(e Event) bool {
	return h.edit(pick(h.kind("lnamespaces").All(), e.A), func(u *unstructured.Unstructured) {
		if e.C%16 == 0 {
			unstructured.RemoveNestedField(u.Object, "spec", "sudoRequests")
			return
		}
		offer := map[string]any{"eligible": drawSubjects(e.B), "approvals": int64(1 + (e.C>>4&3)/3), "breakGlass": e.C>>5&3 == 0}
		if e.C>>7&1 == 1 {
			offer["approvers"] = drawSubjects(e.B >> 7)
		}
		if e.C>>8&7 == 0 {
			offer["maxDuration"] = "2m"
		}
		set(u, offer, "spec", "sudoRequests")
	})
}

// editEligible puts one person onto the list of those who may ask, or takes them off.
func (h *History) editEligible(e Event) bool {
	return h.edit(pick(h.kind("lnamespaces").All(), e.A), func(u *unstructured.Unstructured) {
		list, _, _ := unstructured.NestedSlice(u.Object, eligible...)
		person := map[string]any{"kind": "User", "name": people[e.B%len(people)]}
		kept := slices.DeleteFunc(slices.Clone(list), func(s any) bool {
			subject, _ := s.(map[string]any)
			return subject["name"] == person["name"]
		})
		if len(kept) == len(list) {
			kept = append(kept, person)
		}
		set(u, kept, eligible...)
	})
}

// actor is a person, and the group by which they act, if they name one.
type actor struct{ user, group string }

func (a actor) fields() map[string]any {
	if a.group == "" {
		return map[string]any{"user": a.user}
	}
	return map[string]any{"user": a.user, "group": a.group}
}

// anybody returns a person who need not be on a list, and may name a group of theirs.
func anybody(n int) actor {
	person := append(slices.Clone(people), stranger)[n%(len(people)+1)]
	if groups := memberships[person]; len(groups) > 0 && n>>3&1 == 1 {
		return actor{person, groups[n>>4%len(groups)]}
	}
	return actor{person, ""}
}

// actorsOf returns those whom a list of a tenant names, and those who are in its groups.
func actorsOf(tenant *api.Record, path ...string) (actors []actor) {
	list, _, _ := unstructured.NestedSlice(tenant.Object, path...)
	for _, each := range list {
		subject, _ := each.(map[string]any)
		name, _ := subject["name"].(string)
		if subject["kind"] == "User" {
			actors = append(actors, actor{name, ""})
			continue
		}
		for _, person := range people {
			if slices.Contains(memberships[person], name) {
				actors = append(actors, actor{person, name})
			}
		}
	}
	return actors
}

// askForSudo has a person ask, who need not be eligible: as if another binding let them.
func (h *History) askForSudo(e Event) bool {
	all := h.kind("lnamespaces").All()
	offering := slices.DeleteFunc(slices.Clone(all), func(r *api.Record) bool { return len(actorsOf(r, eligible...)) == 0 })
	tenant, asks := pick(all, e.A), anybody(e.B)
	if r := pick(offering, e.A); r != nil && e.C&7 > 0 {
		may := actorsOf(r, eligible...)
		tenant, asks = r, may[e.B%len(may)]
	}
	if tenant == nil {
		return false
	}
	h.asked++
	spec := asks.fields()
	maps.Copy(spec, map[string]any{"reason": "a repair by night", "duration": []any{"1m", "2m", "3m", "5m"}[e.C>>3&3],
		"breakGlass": e.C>>5&7 == 0})
	name := fmt.Sprint("r", h.asked)
	if !h.writeAs(asks.user, newObject(version, "SudoRequest", tenant.GetName(), name, map[string]any{"spec": spec})) {
		return false
	}
	for n := range e.C >> 8 & 3 { // others are asked to approve it
		h.Sim.Run(e.Then / 4)
		h.decideOn(h.kind("sudorequests").Find(tenant.GetName(), name), Event{B: e.B + n, C: e.C | 1}, "Approve")
	}
	return true
}

var eligible = []string{"spec", "sudoRequests", "eligible"}

// writeAs makes an object as a person. Of the policies, the story keeps what policy sudo-requests says.
func (h *History) writeAs(person string, u *unstructured.Unstructured) bool {
	_, refusal := h.Sim.Server.Create(person, u)
	h.note("%s creates %s %s/%s: %s", person, u.GetKind(), u.GetNamespace(), u.GetName(), reason(refusal))
	return refusal == nil
}

func (h *History) approve(e Event) bool { return h.decide(e, "Approve") }
func (h *History) deny(e Event) bool    { return h.decide(e, "Deny") }
func (h *History) endSudo(e Event) bool { return h.decide(e, "End") }

// lastRequests returns the newest requests, perhaps only those that are not over.
func (h *History) lastRequests(open bool) []*api.Record {
	requests := slices.DeleteFunc(h.kind("sudorequests").All(), func(r *api.Record) bool {
		conditions, _, _ := unstructured.NestedSlice(r.Object, "status", "conditions")
		if len(conditions) == 0 || !open {
			return false
		}
		active, _ := conditions[0].(map[string]any)
		return !slices.Contains([]any{"Pending", "Granted", "Granting", "PolicyMissing", "TimerMissing"}, active["reason"])
	})
	slices.SortFunc(requests, func(a, b *api.Record) int { return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time) })
	return requests[max(0, len(requests)-4):]
}

func (h *History) decide(e Event, verdict string) bool {
	return h.decideOn(pick(h.lastRequests(e.C>>5&7 > 0), e.A), e, verdict)
}

// decideOn has a person decide on a request: mostly one who may.
func (h *History) decideOn(r *api.Record, e Event, verdict string) bool {
	if r == nil {
		return false
	}
	requester, _, _ := unstructured.NestedString(r.Object, "spec", "user")
	decides := anybody(e.B)
	if tenant := h.kind("lnamespaces").Find("", r.GetNamespace()); tenant != nil && e.C&7 > 0 {
		may := append(actorsOf(tenant, "spec", "managers"), actorsOf(tenant, "spec", "sudoRequests", "approvers")...)
		if may = slices.DeleteFunc(may, func(a actor) bool { return a.user == requester }); len(may) > 0 {
			decides = may[e.B%len(may)]
		}
	}
	if verdict == "End" && e.C>>3&3 == 0 {
		decides = actor{requester, ""}
	}
	if verdict != "End" && decides.user == requester {
		return false // the policy
	}
	decision := decides.fields()
	decision["verdict"] = verdict
	u := r.DeepCopy()
	list, _, _ := unstructured.NestedSlice(u.Object, "spec", "decisions")
	set(u, append(list, decision), "spec", "decisions")
	_, refusal := h.Sim.Server.Update(decides.user, r, "", u)
	h.note("%s decides %s on %s/%s: %s", decides.user, verdict, r.GetNamespace(), r.GetName(), reason(refusal))
	return refusal == nil
}

func (h *History) deleteRequest(e Event) bool {
	return h.remove(pick(h.kind("sudorequests").All(), e.A))
}

// deleteTimer has a cluster admin end a right by its timer.
func (h *History) deleteTimer(e Event) bool {
	r := pick(h.Sim.Server.Kind("batch", "jobs").All(), e.A)
	if r != nil {
		h.requests.Doubt(r.GetName())
	}
	return h.remove(r)
}

// replaceTenant has a cluster admin take the finalizers off a tenant that is deleted, and make another one of its name.
func (h *History) replaceTenant(e Event) bool {
	old := pick(h.kind("lnamespaces").All(), e.A)
	if old == nil {
		return false
	}
	h.remove(old)
	if now := h.kind("lnamespaces").Find("", old.GetName()); now != nil {
		h.edit(now, func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
	}
	return h.create(newObject(version, "LNamespace", "", old.GetName(), map[string]any{"spec": old.DeepCopy().Object["spec"]}))
}
