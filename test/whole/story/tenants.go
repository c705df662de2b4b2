package story

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func (h *History) makeTenant(e Event) bool {
	spec := map[string]any{"users": drawPeople(e.B), "sudoers": drawPeople(e.B >> 5 & (e.B >> 10)), "managers": drawPeople(e.C & (e.C >> 5)),
		"allowCascadingDeletion": true}
	if e.C%3 == 0 {
		spec["limits"] = drawLimits(e.C)
	}
	return h.create(newObject(version, "LNamespace", "", tenantName(e.A), map[string]any{"spec": spec}))
}

// drawLimits returns limits of a tenant.
func drawLimits(n int) map[string]any {
	limits := map[string]any{}
	if n>>2&1 == 1 {
		limits["hard"] = drawHard(n >> 3)
	}
	if n>>6&7 == 0 {
		limits["copies"] = int64(n >> 9 % 12)
	}
	if n>>9&7 == 0 {
		limits["subNamespaces"] = int64(n >> 12 % 6)
	}
	return limits
}

// drawHard returns a budget of a few things that are counted.
func drawHard(n int) map[string]any {
	hard := map[string]any{"pods": fmt.Sprint(n % 13)}
	if n>>4&3 == 0 {
		hard["configmaps"] = fmt.Sprint(4 + n>>6%20)
	}
	return hard
}

func (h *History) editLists(e Event) bool {
	return h.edit(pick(h.kind("lnamespaces").All(), e.A), func(u *unstructured.Unstructured) {
		set(u, drawPeople(e.B), "spec", []string{"users", "managers", "sudoers"}[e.C%3])
	})
}

func (h *History) editLimits(e Event) bool {
	return h.edit(pick(h.kind("lnamespaces").All(), e.A), func(u *unstructured.Unstructured) {
		if e.B%4 == 0 {
			unstructured.RemoveNestedField(u.Object, "spec", "limits")
			return
		}
		set(u, drawLimits(e.C|4), "spec", "limits")
	})
}

func (h *History) editTemplate(e Event) bool {
	return h.edit(pick(h.kind("lnamespaces").All(), e.A), func(u *unstructured.Unstructured) {
		if e.B%3 == 0 {
			unstructured.RemoveNestedField(u.Object, "spec", "template")
			return
		}
		set(u, fmt.Sprint("tpl", e.C%2), "spec", "template")
	})
}

func (h *History) deleteTenant(e Event) bool { return h.remove(pick(h.kind("lnamespaces").All(), e.A)) }

func (h *History) makeSub(e Event) bool {
	namespace := h.namespace(e.A)
	return namespace != "" && h.create(newObject(version, "SubNamespace", namespace, fmt.Sprint("s", e.B%6), nil))
}

func (h *History) deleteSub(e Event) bool { return h.remove(pick(h.kind("subnamespaces").All(), e.A)) }

func (h *History) makeNamespace(e Event) bool {
	return h.create(newObject("v1", "Namespace", "", fmt.Sprint("n", e.A%4), nil))
}

func (h *History) deleteNamespace(e Event) bool {
	return h.remove(pick(h.namespaces(), e.A))
}

func (h *History) makeTemplate(e Event) bool {
	u := newObject("v1", "Namespace", "", fmt.Sprint("tpl", e.A%2), nil)
	u.SetLabels(map[string]string{domain + "/type": "template", "team": fmt.Sprint("x", e.B%3)})
	return h.create(u)
}

// placeNamespace asks for a parent of a namespace, for none, or takes the request back.
func (h *History) placeNamespace(e Event) bool {
	namespace, parent := h.namespace(e.A), h.namespace(e.B)
	if e.C%6 == 0 {
		parent = ""
	}
	return namespace != "" && h.configureIn(namespace, func(u *unstructured.Unstructured) {
		if set(u, parent, "spec", "parent"); e.C%9 == 1 {
			unstructured.RemoveNestedField(u.Object, "spec", "parent")
		}
	})
}

// configure changes another field of a HierarchyConfiguration.
func (h *History) configure(e Event) bool {
	namespace := h.namespace(e.A)
	return namespace != "" && h.configureIn(namespace, func(u *unstructured.Unstructured) {
		switch e.B % 4 {
		case 0:
			set(u, []any{"team"}, "spec", "propagatedLabels")
			h.edit(h.core("namespaces").Find("", namespace), func(ns *unstructured.Unstructured) { setLabel(ns, "team", fmt.Sprint("y", e.C%3)) })
		case 1:
			set(u, []any{fmt.Sprint("s", e.C%6)}, "spec", "requiredChildren")
		case 2:
			set(u, e.C%2 == 0, "spec", "allowCascadingDeletion")
		default:
			unstructured.RemoveNestedField(u.Object, "spec", "requiredChildren")
			unstructured.RemoveNestedField(u.Object, "spec", "propagatedLabels")
		}
	})
}

func (h *History) configureIn(namespace string, change func(*unstructured.Unstructured)) bool {
	if r := h.kind("hierarchyconfigurations").Find(namespace, "hierarchy"); r != nil {
		return h.edit(r, change)
	}
	u := newObject(version, "HierarchyConfiguration", namespace, "hierarchy", map[string]any{"spec": map[string]any{}})
	change(u)
	return h.create(u)
}
