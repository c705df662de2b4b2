package oracle

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/warren-tenancy/warren/test/whole/api"
)

// addRecord begins to follow a request.
func (o *Requests) addRecord(request *api.Record) {
	text := func(key string) string {
		value, _, _ := unstructured.NestedString(request.Object, "spec", key)
		return value
	}
	duration, err := time.ParseDuration(text("duration"))
	if err != nil {
		panic(err) // the CRD allows no other
	}
	glass, _, _ := unstructured.NestedBool(request.Object, "spec", "breakGlass")
	r := &record{uid: request.GetUID(), tenant: request.GetNamespace(), name: request.GetName(), user: text("user"), group: text("group"),
		duration: duration, breakGlass: glass}
	if tenant := o.server.Kind(domain, "lnamespaces").Find("", r.tenant); tenant != nil {
		r.tenantUID = tenant.GetUID()
	}
	same := 0
	for _, other := range o.records {
		if other.user == r.user && other.tenant == r.tenant {
			same++
		}
	}
	for _, other := range o.records { // how many are open is decided in an order that whole seconds don't tell
		if same >= mostOpen && other.user == r.user && other.tenant == r.tenant {
			other.isDoubtful = other.isDoubtful || !other.wasGiven
		}
	}
	r.isDoubtful = same >= mostOpen
	o.records = append(o.records, r)
}

// update takes in that the rules of a tenant's requests have changed, or of all.
func (o *Requests) update(tenant string, now time.Time) {
	for _, r := range o.records {
		if tenant != "" && r.tenant != tenant {
			continue
		}
		may, ends := o.rulesOf(r)
		if r.isGrantable && !may || may && !r.isGrantable {
			r.grantable = now
		}
		if r.isGrantable = may; ends {
			r.isDoubtful = true
			if r.ended.IsZero() {
				r.ended = now
			}
		} else if !r.ended.IsZero() && !r.isOver {
			if r.isOver = o.isDue(r.ended, now); !r.isOver {
				r.ended = time.Time{}
			}
		}
		if start := o.startOf(r); start.IsZero() {
			r.started = time.Time{}
		} else if r.started.IsZero() {
			r.started = now
		}
	}
}

// rulesOf returns whether a request may be granted as things are, and whether something ends it.
func (o *Requests) rulesOf(r *record) (may, ends bool) {
	request := o.server.Kind(domain, "sudorequests").Find(r.tenant, r.name)
	tenant := o.server.Kind(domain, "lnamespaces").Find("", r.tenant)
	if request == nil || request.GetUID() != r.uid || tenant == nil || tenant.GetUID() != r.tenantUID ||
		tenant.GetDeletionTimestamp() != nil || !tenant.GetCreationTimestamp().Time.Before(request.GetCreationTimestamp().Time) {
		return false, true
	}
	if !names(tenant, r.user, r.group, "spec", "sudoRequests", "eligible") {
		return false, true
	}
	approvers := []string{"spec", "sudoRequests", "approvers"}
	if list, _, _ := unstructured.NestedSlice(tenant.Object, approvers...); len(list) == 0 {
		approvers = []string{"spec", "managers"}
	}
	approved := map[string]bool{}
	decisions, _, _ := unstructured.NestedSlice(request.Object, "spec", "decisions")
	for _, each := range decisions {
		decision, _ := each.(map[string]any)
		who, _ := decision["user"].(string)
		by, _ := decision["group"].(string)
		approves := names(tenant, who, by, approvers...)
		judges := approves || names(tenant, who, by, "spec", "managers")
		switch verdict := decision["verdict"]; {
		case verdict == "Deny" && judges, verdict == "End" && (judges || who == r.user):
			return false, true
		case verdict == "Approve" && approves && who != r.user:
			approved[who] = true
		}
	}
	return o.isWithinLimits(r, tenant, len(approved)), false
}

// isWithinLimits reports whether a tenant allows a request that so many have approved, and the policies are in force.
func (o *Requests) isWithinLimits(r *record, tenant *api.Record, approved int) bool {
	needed, found, _ := unstructured.NestedInt64(tenant.Object, "spec", "sudoRequests", "approvals")
	if !found {
		needed = 1
	}
	glass, _, _ := unstructured.NestedBool(tenant.Object, "spec", "sudoRequests", "breakGlass")
	longest, _, _ := unstructured.NestedString(tenant.Object, "spec", "sudoRequests", "maxDuration")
	if most, err := time.ParseDuration(longest); err == nil && r.duration > most || r.breakGlass && !glass {
		r.isDoubtful = true
		return false
	}
	return (r.breakGlass || approved >= int(needed)) && o.hasPolicies()
}

// hasPolicies reports whether both policies deny what they should.
func (o *Requests) hasPolicies() bool {
	for _, name := range []string{"warren-sudo-requests", "warren-temporary-sudo"} {
		binding := o.server.Kind("admissionregistration.k8s.io", "validatingadmissionpolicybindings").Find("", name)
		if binding == nil || o.server.Kind("admissionregistration.k8s.io", "validatingadmissionpolicies").Find("", name) == nil {
			return false
		}
		actions, _, _ := unstructured.NestedStringSlice(binding.Object, "spec", "validationActions")
		if !slices.Contains(actions, "Deny") {
			return false
		}
	}
	return true
}

// names reports whether a list of a tenant has a user, or a group by which they act.
func names(tenant *api.Record, user, group string, path ...string) bool {
	list, _, _ := unstructured.NestedSlice(tenant.Object, path...)
	for _, each := range list {
		subject, _ := each.(map[string]any)
		if subject["kind"] == "User" && subject["name"] == user || group != "" && subject["kind"] == "Group" && subject["name"] == group {
			return true
		}
	}
	return false
}
