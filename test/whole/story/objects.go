package story

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/warren-tenancy/warren/test/whole/api"
)

const (
	domain  = "tenancy.warren.dev"
	version = domain + "/v1alpha1"
	rbac    = "rbac.authorization.k8s.io"
)

// newObject returns an object with some fields.
func newObject(apiVersion, kind, namespace, name string, fields map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	maps.Copy(u.Object, fields)
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// people are those whom lists name. mallory is on none.
var people = []string{"alice", "bob", "carol", "dave", "erin"}

// drawPeople returns some of them as subjects, by the bits of a number.
func drawPeople(bits int) []any {
	subjects := []any{}
	for i, name := range people {
		if bits>>i&1 == 1 {
			subjects = append(subjects, map[string]any{"kind": "User", "name": name})
		}
	}
	return subjects
}

// kind returns a kind of Warren.
func (h *History) kind(resource string) *api.Kind { return h.Sim.Server.Kind(domain, resource) }

func (h *History) core(resource string) *api.Kind { return h.Sim.Server.Kind("", resource) }

// create makes an object as a cluster admin. It reports whether the API server accepted it.
func (h *History) create(u *unstructured.Unstructured) bool {
	_, refusal := h.Sim.Server.Create(api.Admin, u)
	h.note("create %s %s/%s: %v", u.GetKind(), u.GetNamespace(), u.GetName(), reason(refusal))
	return refusal == nil
}

func reason(refusal *api.Refusal) string {
	if refusal == nil {
		return "done"
	}
	return refusal.Error()
}

// edit changes an object as a cluster admin.
func (h *History) edit(r *api.Record, change func(u *unstructured.Unstructured)) bool {
	if r == nil {
		return false
	}
	u := r.DeepCopy()
	change(u)
	_, refusal := h.Sim.Server.Update(api.Admin, r, "", u)
	h.note("edit %s %s/%s: %s", r.GetKind(), r.GetNamespace(), r.GetName(), reason(refusal))
	return refusal == nil
}

// remove deletes an object as a cluster admin.
func (h *History) remove(r *api.Record) bool {
	if r == nil {
		return false
	}
	h.Sim.Server.Delete(api.Admin, r)
	h.note("delete %s %s/%s", r.GetKind(), r.GetNamespace(), r.GetName())
	return true
}

func (h *History) note(format string, args ...any) { h.Sim.Log("user", fmt.Sprintf(format, args...)) }

// set sets a field of an object of the model, which takes every value.
func set(u *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		panic(err)
	}
}

// setLabel sets a label, or removes it if the value is empty.
func setLabel(u *unstructured.Unstructured, key, value string) {
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	if labels[key] = value; value == "" {
		delete(labels, key)
	}
	u.SetLabels(labels)
}

// pick returns one of the records, by a number; nil if there are none.
func pick(records []*api.Record, n int) *api.Record {
	if len(records) == 0 {
		return nil
	}
	return records[n%len(records)]
}

// namespaces returns those that users may work in: not those of the cluster itself.
func (h *History) namespaces() []*api.Record {
	return slices.DeleteFunc(h.core("namespaces").All(), func(r *api.Record) bool {
		return slices.Contains([]string{"default", "kube-system", "warren-system", sudoNamespace}, r.GetName()) || r.GetDeletionTimestamp() != nil
	})
}

// namespace returns the name of one of them, by a number; "" if there are none.
func (h *History) namespace(n int) string {
	if r := pick(h.namespaces(), n); r != nil {
		return r.GetName()
	}
	return ""
}
