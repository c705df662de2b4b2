package story

import (
	"fmt"
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
		h.requests.Look()
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
		list, _, _ := unstructured.NestedSlice(u.Object, "spec", "sudoRequests", "eligible")
		person := map[string]any{"kind": "User", "name": people[e.B%len(people)]}
		kept := slices.DeleteFunc(slices.Clone(list), func(s any) bool {
			subject, _ := s.(map[string]any)
			return subject["name"] == person["name"]
		})
		if len(kept) == len(list) {
			kept = append(kept, person)
		}
		set(u, kept, "spec", "sudoRequests", "eligible")
	})
}

// groupOf returns a group that a person names: mostly one of theirs, if they have any.
func groupOf(person string, n int) string {
	if groups := memberships[person]; len(groups) > 0 && n%3 > 0 {
		return groups[n%len(groups)]
	}
	return ""
}

// askForSudo has a person ask, who need not be eligible: as if another binding let them.
func (h *History) askForSudo(e Event) bool {
	person := append(slices.Clone(people), stranger)[e.B%(len(people)+1)]
	// Mostly somebody who is eligible by name.
	tenant := pick(h.kind("lnamespaces").All(), e.A)
	if tenant == nil {
		return false
	}
	if eligible := usersIn(tenant, "spec", "sudoRequests", "eligible"); len(eligible) > 0 && e.C%4 > 0 {
		person = eligible[e.B%len(eligible)]
	}
	spec := map[string]any{"user": person, "reason": "a repair by night", "duration": []any{"1m", "2m", "3m", "5m"}[e.C>>2&3],
		"breakGlass": e.C>>4&7 == 0}
	if group := groupOf(person, e.C>>7); group != "" {
		spec["group"] = group
	}
	h.asked++
	return h.writeAs(person, newObject(version, "SudoRequest", tenant.GetName(), fmt.Sprint("r", h.asked), map[string]any{"spec": spec}))
}

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

// decide has a person decide on one of the last requests: mostly one who may.
func (h *History) decide(e Event, verdict string) bool {
	r := pick(h.lastRequests(e.C>>2%4 > 0), e.A)
	if r == nil {
		return false
	}
	requester, _, _ := unstructured.NestedString(r.Object, "spec", "user")
	person := append(slices.Clone(people), stranger)[e.B%(len(people)+1)]
	if tenant := h.kind("lnamespaces").Find("", r.GetNamespace()); tenant != nil && e.C%4 > 0 {
		judges := append(usersIn(tenant, "spec", "managers"), usersIn(tenant, "spec", "sudoRequests", "approvers")...)
		if judges = slices.DeleteFunc(judges, func(name string) bool { return name == requester }); len(judges) > 0 {
			person = judges[e.B%len(judges)]
		}
	}
	if verdict == "End" && e.C%3 == 0 {
		person = requester
	}
	if verdict != "End" && person == requester {
		return false // the policy
	}
	decision := map[string]any{"user": person, "verdict": verdict}
	if group := groupOf(person, e.C>>4); group != "" {
		decision["group"] = group
	}
	u := r.DeepCopy()
	list, _, _ := unstructured.NestedSlice(u.Object, "spec", "decisions")
	set(u, append(list, decision), "spec", "decisions")
	_, refusal := h.Sim.Server.Update(person, r, "", u)
	h.note("%s decides %s on %s/%s: %s", person, verdict, r.GetNamespace(), r.GetName(), reason(refusal))
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

func usersIn(r *api.Record, path ...string) []string {
	var users []string
	list, _, _ := unstructured.NestedSlice(r.Object, path...)
	for _, each := range list {
		if subject, _ := each.(map[string]any); subject["kind"] == "User" {
			users = append(users, fmt.Sprint(subject["name"]))
		}
	}
	return users
}
