package api

import (
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Create makes an object as a user.
func (s *Server) Create(user string, object *unstructured.Unstructured) (*Record, *Refusal) {
	for _, k := range s.kinds {
		if k.GroupVersionKind == object.GroupVersionKind() {
			return s.create(k, object.GetNamespace(), object.DeepCopy(), options{user: user, manager: "kubectl"})
		}
	}
	panic("the model does not serve " + object.GroupVersionKind().String())
}

func (s *Server) create(k *Kind, namespace string, u *unstructured.Unstructured, o options) (*Record, *Refusal) {
	of := k.GroupResource()
	if u.GetName() == "" {
		if u.GetGenerateName() == "" {
			return nil, invalid(k, "", field.ErrorList{field.Required(field.NewPath("metadata", "name"), "name or generateName is required")})
		}
		s.uids++
		u.SetName(fmt.Sprintf("%s%05d", u.GetGenerateName(), s.uids))
	}
	u.SetGroupVersionKind(k.GroupVersionKind)
	u.SetNamespace(namespace)
	if k.Find(namespace, u.GetName()) != nil {
		return nil, exists(of, u.GetName())
	}
	if refusal := s.checkNamespace(k, namespace, u.GetName()); refusal != nil {
		return nil, refusal
	}
	if u.GetResourceVersion() != "" {
		return nil, refuse400("resourceVersion should not be set on objects to be created")
	}
	u.SetUID(s.newUID())
	u.SetCreationTimestamp(metav1.NewTime(s.Now()))
	u.SetDeletionTimestamp(nil)
	u.SetManagedFields(nil)
	if k.hasStatus && k.definition != nil {
		unstructured.RemoveNestedField(u.Object, "status")
	}
	if k.definition != nil || k.counts {
		u.SetGeneration(1)
	}
	if refusal := s.prepare(k, u, nil); refusal != nil {
		return nil, refusal
	}
	if refusal := s.admit(k, u, nil, o); refusal != nil {
		return nil, refusal
	}
	k.trackManager(u, nil, "", o)
	if o.dryRun {
		return &Record{Unstructured: u, Kind: k}, nil
	}
	return s.store(k, nil, u, o.user), nil
}

// checkNamespace refuses creations where there is no namespace, or one that is being deleted.
func (s *Server) checkNamespace(k *Kind, namespace, name string) *Refusal {
	if !k.Namespaced {
		return nil
	}
	ns := s.Kind("", "namespaces").Find("", namespace)
	switch {
	case ns == nil:
		return notFound(s.Kind("", "namespaces").GroupResource(), namespace)
	case ns.GetDeletionTimestamp() != nil:
		refusal := forbidden(k.GroupResource(), name, fmt.Sprintf(
			"unable to create new content in namespace %s because it is being terminated", namespace))
		refusal.status.Details.Causes = append(refusal.status.Details.Causes, metav1.StatusCause{
			Type: "NamespaceTerminating", Message: fmt.Sprintf("namespace %s is being terminated", namespace), Field: "metadata.namespace"})
		return refusal
	}
	return nil
}

func (s *Server) admit(k *Kind, u *unstructured.Unstructured, old *Record, o options) *Refusal {
	if refusal := s.checkEscalation(k, u, old, o); refusal != nil || s.Admit == nil {
		return refusal
	}
	return s.Admit(&Record{Unstructured: u, Kind: k}, old, o.dryRun)
}

// change carries out a PUT or a PATCH.
func (s *Server) change(to route, r Request, o options) (*Record, *Refusal) {
	old := to.kind.Find(to.namespace, to.name)
	if r.Method == http.MethodPut {
		return s.update(to.kind, old, to.name, to.child, decodeObject(r.Body), o)
	}
	if old == nil {
		return nil, notFound(to.kind.GroupResource(), to.name)
	}
	u, refusal := patched(old, r)
	if refusal != nil {
		return nil, refusal
	}
	return s.update(to.kind, old, to.name, to.child, u, o)
}

// Update changes an object as a user; with child status its status alone.
func (s *Server) Update(user string, old *Record, child string, object *unstructured.Unstructured) (*Record, *Refusal) {
	return s.update(old.Kind, old.Kind.Find(old.GetNamespace(), old.GetName()), old.GetName(), child, object.DeepCopy(),
		options{user: user, manager: "kubectl"})
}

func (s *Server) update(k *Kind, old *Record, name, child string, u *unstructured.Unstructured, o options) (*Record, *Refusal) {
	if refusal := checkVersion(k, old, name, u); refusal != nil {
		return nil, refusal
	}
	keepSystemFields(old, u)
	switch {
	case child == "status":
		status, found := u.Object["status"]
		managed := u.GetManagedFields()
		u = old.DeepCopy()
		u.SetManagedFields(managed)
		if u.Object["status"] = status; !found {
			delete(u.Object, "status")
		}
	case child != "":
		panic("the model does not serve the subresource " + child + " of " + k.Resource)
	case k.hasStatus:
		if status, found := old.Object["status"]; found {
			u.Object["status"] = status
		} else {
			delete(u.Object, "status")
		}
	}
	if refusal := s.prepare(k, u, old); refusal != nil {
		return nil, refusal
	}
	if isSame(old.Unstructured, u) {
		return old, nil
	}
	if refusal := s.admit(k, u, old, o); refusal != nil {
		return nil, refusal
	}
	if (k.definition != nil || k.counts) && child == "" && !equality.Semantic.DeepEqual(content(old.Unstructured), content(u)) {
		u.SetGeneration(old.GetGeneration() + 1)
	}
	k.trackManager(u, old, child, o)
	if o.dryRun {
		return &Record{Unstructured: u, Kind: k}, nil
	}
	r := s.store(k, old, u, o.user)
	if isFree(r) {
		return s.remove(r, o.user), nil
	}
	return r, nil
}

// checkVersion refuses what was written for another version of the object, or for another object of its name.
func checkVersion(k *Kind, old *Record, name string, u *unstructured.Unstructured) *Refusal {
	of := k.GroupResource()
	switch {
	case old == nil && u.GetUID() != "":
		return conflict(of, name, fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: ", u.GetUID()))
	case old == nil && k.Group == "rbac.authorization.k8s.io" && u.GetResourceVersion() == "":
		panic("the model does not create RBAC objects by PUT")
	case old == nil:
		return notFound(of, name)
	case u.GetName() != name:
		return refuse400("the name of the object does not match the name on the URL")
	case u.GetUID() != "" && u.GetUID() != old.GetUID():
		return conflict(of, name, fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", u.GetUID(), old.GetUID()))
	case u.GetResourceVersion() != "" && u.GetResourceVersion() != old.GetResourceVersion():
		return conflict(of, name, "the object has been modified; please apply your changes to the latest version and try again")
	case u.GetResourceVersion() == "" && k.definition != nil:
		return invalid(k, name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")})
	}
	return nil
}

// keepSystemFields puts into u what only the API server writes.
func keepSystemFields(old *Record, u *unstructured.Unstructured) {
	u.SetGroupVersionKind(old.GroupVersionKind())
	u.SetNamespace(old.GetNamespace())
	u.SetUID(old.GetUID())
	u.SetResourceVersion(old.GetResourceVersion())
	u.SetGeneration(old.GetGeneration())
	for _, key := range []string{"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName"} {
		value, found, _ := unstructured.NestedFieldCopy(old.Object, "metadata", key)
		if !found {
			unstructured.RemoveNestedField(u.Object, "metadata", key)
		} else if err := unstructured.SetNestedField(u.Object, value, "metadata", key); err != nil {
			panic(err)
		}
	}
}

// content is what the generation counts: all but metadata and status.
func content(u *unstructured.Unstructured) map[string]any {
	c := map[string]any{}
	for key, value := range u.Object {
		if key != "metadata" && key != "status" {
			c[key] = value
		}
	}
	return c
}

// isSame reports whether a write changes nothing.
func isSame(old, u *unstructured.Unstructured) bool {
	a, b := old.DeepCopy(), u.DeepCopy()
	a.SetManagedFields(nil)
	b.SetManagedFields(nil)
	return equality.Semantic.DeepEqual(a.Object, b.Object)
}

// isFree reports whether an object that is being deleted waits for nothing more.
func isFree(r *Record) bool {
	if r.GetDeletionTimestamp() == nil || len(r.GetFinalizers()) > 0 {
		return false
	}
	inner, _, _ := unstructured.NestedStringSlice(r.Object, "spec", "finalizers")
	return r.Kind.Resource != "namespaces" || len(inner) == 0
}

// deletion are the options of a DELETE.
func deletionOf(r Request) (metav1.DeleteOptions, options) {
	d := metav1.DeleteOptions{}
	if len(r.Body) > 0 {
		decodeInto(r.Body, &d)
	}
	if policy := r.Query.Get("propagationPolicy"); policy != "" {
		d.PropagationPolicy = new(metav1.DeletionPropagation(policy))
	}
	if d.PropagationPolicy != nil && *d.PropagationPolicy != metav1.DeletePropagationBackground {
		panic("the model does not know the propagation policy " + string(*d.PropagationPolicy))
	}
	o := optionsOf(r)
	o.dryRun = o.dryRun || len(d.DryRun) > 0
	return d, o
}

func (s *Server) deleteOne(to route, r Request) Response {
	d, o := deletionOf(r)
	old := to.kind.Find(to.namespace, to.name)
	if old == nil {
		return notFound(to.kind.GroupResource(), to.name).response()
	}
	if p := d.Preconditions; p != nil {
		if p.UID != nil && *p.UID != old.GetUID() {
			return conflict(to.kind.GroupResource(), to.name, "Precondition failed: UID in precondition: "+string(*p.UID)).response()
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != old.GetResourceVersion() {
			return conflict(to.kind.GroupResource(), to.name, "Precondition failed: ResourceVersion in precondition: "+*p.ResourceVersion).response()
		}
	}
	if gone := o.dryRun || s.markDeleted(old, o.user); gone {
		return Response{Code: http.StatusOK, Body: mustEncode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{Name: to.name, Group: to.kind.Group, Kind: to.kind.Resource,
				UID: old.GetUID()}})}
	}
	return Response{Code: http.StatusOK, Body: to.kind.Find(to.namespace, to.name).encode(false)}
}

// Delete deletes an object as a user; an object with finalizers is only marked.
func (s *Server) Delete(user string, r *Record) {
	if now := r.Kind.Find(r.GetNamespace(), r.GetName()); now != nil && now.GetUID() == r.GetUID() {
		s.markDeleted(now, user)
	}
}

// markDeleted deletes an object, and reports whether it is gone.
func (s *Server) markDeleted(old *Record, user string) bool {
	if old.GetDeletionTimestamp() != nil && !isFree(old) {
		return false
	}
	u := old.DeepCopy()
	if old.GetDeletionTimestamp() == nil {
		u.SetDeletionTimestamp(&metav1.Time{Time: s.Now()})
		seconds := int64(0)
		u.SetDeletionGracePeriodSeconds(&seconds)
		if u.GetGeneration() > 0 {
			u.SetGeneration(u.GetGeneration() + 1)
		}
		if old.Kind.Resource == "namespaces" {
			setField(u, "Terminating", "status", "phase")
		}
	}
	marked := &Record{Unstructured: u, Kind: old.Kind, revision: old.revision}
	if isFree(marked) {
		s.remove(marked, user)
		return true
	}
	s.store(old.Kind, old, u, user)
	return false
}

// DeleteForeground deletes an object once the garbage collector has seen to what it owns.
func (s *Server) DeleteForeground(user string, r *Record) {
	u := r.DeepCopy()
	u.SetFinalizers(append(u.GetFinalizers(), Foreground))
	s.markDeleted(&Record{Unstructured: u, Kind: r.Kind, revision: r.revision}, user)
}

// Foreground is the finalizer of an object that is deleted after what it owns.
const Foreground = "foregroundDeletion"

func (s *Server) deleteCollection(to route, r Request) Response {
	_, o := deletionOf(r)
	wanted := selectionOf(to, r)
	for _, each := range to.kind.All() {
		if wanted.has(each) && !o.dryRun {
			s.markDeleted(each, o.user)
		}
	}
	return Response{Code: http.StatusOK, Body: []byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`)}
}

func setField(u *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		panic(fmt.Sprintf("setting %s: %v", strings.Join(path, "."), err))
	}
}

// Finalize takes the built-in finalizer off a namespace, as the namespace controller does when it is empty.
func (s *Server) Finalize(ns *Record, user string) {
	u := ns.DeepCopy()
	unstructured.RemoveNestedField(u.Object, "spec", "finalizers")
	if r := s.store(ns.Kind, ns, u, user); isFree(r) {
		s.remove(r, user)
	}
}

// FindOwner returns the object that an owner reference of an object in a namespace means, nil if there is none.
func (s *Server) FindOwner(owner metav1.OwnerReference, namespace string) *Record {
	for _, k := range s.kinds {
		if k.GroupVersion().String() != owner.APIVersion || k.Kind != owner.Kind {
			continue
		}
		if !k.Namespaced {
			namespace = ""
		}
		if r := k.Find(namespace, owner.Name); r != nil && r.GetUID() == owner.UID {
			return r
		}
	}
	return nil
}
