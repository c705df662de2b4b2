// Package plane is the rest of a control plane for test/whole: the controllers that empty namespaces, collect garbage, count quotas and
// give each namespace its root certificate, complete Jobs without pods and delete them after their time, and the admission of objects by
// ResourceQuotas.
package plane

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/warren-tenancy/warren/test/whole/api"
)

// User is the name under which the control plane writes.
const User = "system:kube-controller-manager"

// Plane finds what the controllers of Kubernetes have to do.
type Plane struct {
	server *api.Server
	// seen is the revision for which tasks were found.
	seen  int64
	tasks []Task
	// Away is whether the controller manager is down: its admission of objects by quotas is the API server's, and stays.
	Away bool
	// wake is when the next finished Job is to be deleted; zero if there is none.
	wake time.Time
}

// Task is one step of a controller.
type Task struct {
	Name string
	Do   func()
}

// New returns the control plane of a server, and has the server ask it about quotas.
func New(server *api.Server) *Plane {
	p := &Plane{server: server, seen: -1}
	server.Admit = p.admit
	return p
}

// Tasks returns what is to be done now.
func (p *Plane) Tasks() []Task {
	if p.Away {
		return nil
	}
	if p.seen == p.server.Revision() && (p.wake.IsZero() || p.server.Now().Before(p.wake)) {
		return p.tasks
	}
	p.seen, p.tasks, p.wake = p.server.Revision(), nil, time.Time{}
	p.findNamespaceTasks()
	p.findGarbage()
	p.findUncounted()
	p.findJobTasks()
	return p.tasks
}

// add adds a task. A controller whose write is refused tries again later, when something else has changed.
func (p *Plane) add(name string, do func() *api.Refusal) {
	p.tasks = append(p.tasks, Task{name, func() {
		if refusal := do(); refusal != nil {
			p.drop(name)
		} else if p.seen == p.server.Revision() {
			panic("a controller of the model goes in a circle: " + name)
		}
	}})
}

func (p *Plane) drop(name string) {
	p.tasks = slices.DeleteFunc(slices.Clone(p.tasks), func(t Task) bool { return t.Name == name })
}

// findNamespaceTasks empties namespaces that are being deleted, and gives the others their root certificate.
func (p *Plane) findNamespaceTasks() {
	maps := p.server.Kind("", "configmaps")
	for _, ns := range p.server.Kind("", "namespaces").All() {
		name := ns.GetName()
		if ns.GetDeletionTimestamp() != nil {
			p.emptyNamespace(ns)
			continue
		}
		if maps.Find(name, rootCertificate) == nil {
			p.add("root certificate in "+name, func() *api.Refusal {
				u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"ca.crt": "-"}}}
				u.SetAPIVersion("v1")
				u.SetKind("ConfigMap")
				u.SetNamespace(name)
				u.SetName(rootCertificate)
				_, refusal := p.server.Create(User, u)
				return refusal
			})
		}
	}
}

const rootCertificate = "kube-root-ca.crt"

// emptyNamespace deletes what is in a namespace, one kind in a step, and then the namespace.
func (p *Plane) emptyNamespace(ns *api.Record) {
	left := 0
	for _, k := range p.server.Kinds() {
		if !k.Namespaced {
			continue
		}
		for _, r := range k.In(ns.GetName()) {
			left++
			if r.GetDeletionTimestamp() == nil {
				p.add("delete "+k.Resource+" in "+ns.GetName(), func() *api.Refusal { return p.deleteAll(k, ns.GetName()) })
				break
			}
		}
	}
	inner, _, _ := unstructured.NestedStringSlice(ns.Object, "spec", "finalizers")
	if left == 0 && len(inner) > 0 {
		p.add("finalize namespace "+ns.GetName(), func() *api.Refusal {
			p.server.Finalize(ns, User)
			return nil
		})
	}
}

func (p *Plane) deleteAll(k *api.Kind, namespace string) *api.Refusal {
	for _, r := range k.In(namespace) {
		p.server.Delete(User, r)
	}
	return nil
}

// findGarbage deletes objects all of whose owners are gone, and takes off the owners that are gone of others.
func (p *Plane) findGarbage() {
	for _, k := range p.server.Kinds() {
		for _, r := range k.All() {
			if len(r.GetOwnerReferences()) == 0 || r.GetDeletionTimestamp() != nil {
				p.releaseForeground(r)
				continue
			}
			kept := r.GetOwnerReferences()[:0:0]
			for _, owner := range r.GetOwnerReferences() {
				if of := p.server.FindOwner(owner, r.GetNamespace()); of != nil && !isForeground(of) {
					kept = append(kept, owner)
				}
			}
			switch len(kept) {
			case len(r.GetOwnerReferences()):
			case 0:
				p.add("collect "+k.Kind+" "+r.GetName(), func() *api.Refusal {
					p.server.Delete(User, r)
					return nil
				})
			default:
				p.add("take owners off "+k.Kind+" "+r.GetName(), func() *api.Refusal {
					u := r.DeepCopy()
					u.SetOwnerReferences(kept)
					_, refusal := p.server.Update(User, r, "", u)
					return refusal
				})
			}
		}
	}
}
