package story

import (
	"encoding/base64"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/warren-tenancy/warren/test/whole/api"
)

// copiedKinds are those that the configuration copies.
func (h *History) copiedKinds() []*api.Kind {
	return []*api.Kind{h.core("secrets"), h.core("configmaps"), h.Sim.Server.Kind(rbac, "roles"), h.Sim.Server.Kind(rbac, "rolebindings")}
}

// newCopied returns an object of a kind that is copied, with content by a number.
func newCopied(k *api.Kind, namespace, name string, n int) *unstructured.Unstructured {
	u := newObject(k.GroupVersion().String(), k.Kind, namespace, name, nil)
	switch k.Resource {
	case "secrets":
		set(u, map[string]any{"key": base64.StdEncoding.EncodeToString(fmt.Append(nil, "value", n%8))}, "data")
	case "configmaps":
		set(u, map[string]any{"key": fmt.Sprint("value", n%8)}, "data")
	case "roles":
		set(u, []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{[]any{"get", "list"}[n%2]}}}, "rules")
	case "rolebindings":
		set(u, map[string]any{"apiGroup": rbac, "kind": []any{"Role", "ClusterRole"}[n%2], "name": []any{"r0", "view"}[n%2]}, "roleRef")
		set(u, drawPeople(n>>1), "subjects")
	}
	return u
}

var modes = []string{"create", "update", "update", "none", ""}

func (h *History) makeSource(e Event) bool {
	namespace := h.namespace(e.A)
	if namespace == "" {
		return false
	}
	k := h.copiedKinds()[e.B%4]
	u := newCopied(k, namespace, fmt.Sprintf("%.1s%d", k.Resource, e.B>>2%3), e.C)
	setLabel(u, domain+"/propagate", modes[e.C>>3%3])
	return h.create(u)
}

// objects returns objects of the copied kinds that have a label, without those that carry rights of a tenant's lists: the policies of
// Warren let only the operator change these.
func (h *History) objects(label string) []*api.Record {
	var all []*api.Record
	for _, k := range h.copiedKinds() {
		all = append(all, k.All()...)
	}
	return slices.DeleteFunc(all, func(r *api.Record) bool {
		_, has := r.GetLabels()[label]
		return !has || r.GetLabels()[domain+"/access"] != "" || r.GetNamespace() == "warren-system"
	})
}

func (h *History) editSource(e Event) bool {
	r := pick(h.objects(domain+"/propagate"), e.A)
	return h.edit(r, func(u *unstructured.Unstructured) {
		if e.B%3 == 0 {
			setLabel(u, domain+"/propagate", modes[e.C%5])
			return
		}
		for key, value := range newCopied(r.Kind, "", "", e.C).Object {
			if key != "metadata" && key != "roleRef" {
				u.Object[key] = value
			}
		}
	})
}

func (h *History) deleteSource(e Event) bool {
	return h.remove(pick(h.objects(domain+"/propagate"), e.A))
}

// editCopy changes the content of a copy, but not its labels: the policies of Warren refuse that.
func (h *History) editCopy(e Event) bool {
	r := pick(h.objects(domain+"/inherited-from"), e.A)
	return h.edit(r, func(u *unstructured.Unstructured) {
		for key, value := range newCopied(r.Kind, "", "", e.C).Object {
			if key != "metadata" && key != "roleRef" {
				u.Object[key] = value
			}
		}
	})
}

func (h *History) deleteCopy(e Event) bool {
	return h.remove(pick(h.objects(domain+"/inherited-from"), e.A))
}

func (h *History) makeObstacle(e Event) bool {
	namespace := h.namespace(e.A)
	k := h.copiedKinds()[e.B%4]
	return namespace != "" && h.create(newCopied(k, namespace, fmt.Sprintf("%.1s%d", k.Resource, e.B>>2%3), e.C))
}

func (h *History) makeDistribution(e Event) bool {
	k := h.copiedKinds()[e.B%2]
	content := newCopied(k, "", fmt.Sprint("d", e.B>>1%2), e.C)
	return h.create(newObject(version, "ResourceDistribution", "", fmt.Sprint("rd", e.A%3), map[string]any{"spec": map[string]any{
		"resource": content.Object, "targets": h.drawTargets(e.C), "conflictPolicy": []any{"Fail", "Skip"}[e.A>>2%2],
		"driftPolicy": []any{"Ignore", "Revert"}[e.A>>3%2],
	}}))
}

func (h *History) drawTargets(n int) map[string]any {
	name := h.namespace(n >> 2)
	switch {
	case n%3 == 0 && name != "":
		return map[string]any{"trees": []any{name}}
	case n%3 == 1 && name != "":
		return map[string]any{"includedNamespaces": []any{map[string]any{"name": name}}}
	}
	return map[string]any{"namespaceLabelSelector": map[string]any{"matchLabels": map[string]any{"team": fmt.Sprint("y", n%3)}}}
}

func (h *History) editDistribution(e Event) bool {
	return h.edit(pick(h.kind("resourcedistributions").All(), e.A), func(u *unstructured.Unstructured) {
		switch e.B % 4 {
		case 0:
			set(u, h.drawTargets(e.C), "spec", "targets")
		case 1:
			set(u, e.C%2 == 0, "spec", "suspend")
		case 2:
			set(u, []any{"Delete", "Orphan"}[e.C%2], "spec", "deletionPolicy")
		default:
			set(u, base64.StdEncoding.EncodeToString(fmt.Append(nil, "value", e.C%8)), "spec", "resource", "data", "key")
		}
	})
}

func (h *History) deleteDistribution(e Event) bool {
	return h.remove(pick(h.kind("resourcedistributions").All(), e.A))
}
