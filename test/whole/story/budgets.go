package story

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/warren-tenancy/warren/test/whole/api"
)

func (h *History) makeSubtreeQuota(e Event) bool {
	namespace := h.namespace(e.A)
	return namespace != "" && h.create(newObject(version, "HierarchicalResourceQuota", namespace, fmt.Sprint("q", e.B%2),
		map[string]any{"spec": map[string]any{"hard": drawHard(e.C)}}))
}

func (h *History) editSubtreeQuota(e Event) bool {
	return h.edit(pick(h.kind("hierarchicalresourcequotas").All(), e.A), func(u *unstructured.Unstructured) {
		set(u, drawHard(e.C), "spec", "hard")
	})
}

func (h *History) deleteSubtreeQuota(e Event) bool {
	return h.remove(pick(h.kind("hierarchicalresourcequotas").All(), e.A))
}

// makeWorkload has a ReplicaSet want some pods. As its controller does, it tries again with growing pauses, and an Event tells of each
// refusal. It gives up with its namespace, or when the workload is as old as an impatient user.
func (h *History) makeWorkload(e Event) bool {
	namespace := h.namespace(e.A)
	if namespace == "" {
		return false
	}
	wanted, made, name := 1+e.B%4, 0, fmt.Sprintf("rs%d", e.C)
	end := time.Now().Add(10 * time.Minute)
	h.Sim.Repeat("workload "+name, func() bool {
		for ; made < wanted; made++ {
			pod := newObject("v1", "Pod", namespace, fmt.Sprintf("%s-%d", name, made), map[string]any{
				"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "c"}}}})
			_, refusal := h.Sim.Server.Create(api.Admin, pod)
			switch {
			case refusal == nil:
				continue
			case refusal.Code() != 403:
				return true
			}
			h.tellFailedCreate(namespace, name, refusal)
			return time.Now().After(end)
		}
		return true
	})
	h.note("a workload in %s wants %d pods", namespace, wanted)
	return true
}

func (h *History) tellFailedCreate(namespace, name string, refusal *api.Refusal) {
	now := time.Now().UTC().Format(time.RFC3339)
	event := newObject("v1", "Event", namespace, "", map[string]any{
		"reason": "FailedCreate", "type": "Warning", "message": "Error creating: " + refusal.Error(),
		"firstTimestamp": now, "lastTimestamp": now, "count": int64(1),
		"source":         map[string]any{"component": "replicaset-controller"},
		"involvedObject": map[string]any{"kind": "ReplicaSet", "namespace": namespace, "name": name, "apiVersion": "apps/v1"},
	})
	event.SetGenerateName(name + ".")
	_, _ = h.Sim.Server.Create(api.Admin, event) // the namespace may be gone
}

func (h *History) deletePods(e Event) bool {
	pods := h.core("pods").All()
	for range min(1+e.B%4, len(pods)) {
		h.remove(pick(pods, e.A))
		pods = h.core("pods").All()
	}
	return len(pods) > 0
}

// deleteShare has a tenant's admin delete the operator's ResourceQuota.
func (h *History) deleteShare(e Event) bool {
	shares := slices.DeleteFunc(h.core("resourcequotas").All(), func(r *api.Record) bool { return r.GetName() != "hrq."+domain })
	return h.remove(pick(shares, e.A))
}
