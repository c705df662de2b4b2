package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/distribute"
)

// fault is what goes wrong with one call to the API server.
type fault int

const (
	noFault fault = iota
	tooManyRequests
	unavailable
	unreachable // no answer, and nothing was done
	answerLost  // no answer, and all was done
	faults
)

var (
	errStopped = errors.New("the process has stopped")
	errNoReply = errors.New("net/http: request canceled (Client.Timeout exceeded while awaiting headers)")
)

// client is the copying.API of one replica. Each call waits until the history lets it go on.
type client struct{ *replica }

// call makes one request, when the history lets it go on, or fails. do is what the API server does.
func (c client) call(verb string, slot copies.Slot, do func() error) error {
	w := c.current
	if w.stopped || !w.yield(call{verb, slot, do}) {
		w.stopped = true
		return errStopped
	}
	resource := schema.GroupResource{Group: slot.Kind.Group, Resource: slot.Kind.Kind}
	switch w.fault {
	case tooManyRequests:
		return apierrors.NewTooManyRequests("too many requests", 1)
	case unavailable:
		return apierrors.NewServiceUnavailable("the server is overloaded")
	case unreachable:
		return errNoReply
	case answerLost:
		_ = do()
		return apierrors.NewServerTimeout(resource, verb, 1)
	}
	return do()
}

// Create implements copying.API, and so do Update, Delete, UpdateStatus, Metadata and Object.
func (c client) Create(_ context.Context, r schema.GroupVersionResource, slot copies.Slot,
	body []byte) (meta *metav1.PartialObjectMetadata, err error) {
	err = c.call("POST", slot, func() error {
		meta = nil
		s := c.server
		if err := s.admit(r, slot); err != nil {
			return err
		}
		if s.at(slot) != nil {
			return apierrors.NewAlreadyExists(r.GroupResource(), slot.Name)
		}
		o := s.parse(slot, body)
		o.meta.UID, o.meta.CreationTimestamp = s.newMeta(slot, "").UID, metav1.NewTime(s.now)
		c.checkWrite(slot, nil, o)
		meta = s.put(slot, o).meta
		c.countWrite(slot)
		return nil
	})
	return meta, err
}

func (c client) Update(_ context.Context, r schema.GroupVersionResource, slot copies.Slot,
	body []byte) (meta *metav1.PartialObjectMetadata, err error) {
	err = c.call("PUT", slot, func() error {
		meta = nil
		s, o := c.server, c.server.parse(slot, body)
		known := s.at(slot)
		switch {
		case known == nil:
			return apierrors.NewNotFound(r.GroupResource(), slot.Name)
		case s.denied[slotOfDenial(slot)]:
			return errDenied(r, slot)
		case o.meta.UID == "" || o.meta.ResourceVersion == "":
			c.fail("FLT-M1", "%s: a PUT does not name the version that it replaces", slot)
		case o.meta.UID != known.meta.UID || o.meta.ResourceVersion != known.meta.ResourceVersion:
			return apierrors.NewConflict(r.GroupResource(), slot.Name, errors.New("the object has been modified"))
		case !reflect.DeepEqual(o.rest["roleRef"], known.rest["roleRef"]):
			return apierrors.NewInvalid(slot.Kind, slot.Name, field.ErrorList{field.Invalid(field.NewPath("roleRef"), "…", "cannot change roleRef")})
		}
		o.meta.CreationTimestamp, o.meta.DeletionTimestamp = known.meta.CreationTimestamp, known.meta.DeletionTimestamp
		o.edited = known.edited && reflect.DeepEqual(o.rest, known.rest)
		c.checkWrite(slot, known, o)
		meta = s.put(slot, o).meta
		c.countWrite(slot)
		return nil
	})
	return meta, err
}

func (c client) Delete(_ context.Context, r schema.GroupVersionResource, slot copies.Slot, uid, resourceVersion string) error {
	return c.call("DELETE", slot, func() error {
		known := c.server.at(slot)
		switch {
		case known == nil:
			return apierrors.NewNotFound(r.GroupResource(), slot.Name)
		case c.server.denied[slotOfDenial(slot)]:
			return errDenied(r, slot)
		case uid == "" || resourceVersion == "":
			c.fail("FLT-M1", "%s: a DELETE does not name the version that it deletes", slot)
		case uid != string(known.meta.UID) || resourceVersion != known.meta.ResourceVersion:
			return apierrors.NewConflict(r.GroupResource(), slot.Name, errors.New("precondition failed"))
		}
		c.checkWrite(slot, known, nil)
		c.server.remove(slot)
		c.countWrite(slot)
		return nil
	})
}

func (c client) UpdateStatus(_ context.Context, r schema.GroupVersionResource, name string,
	body []byte) (meta *metav1.PartialObjectMetadata, err error) {
	slot := distributionSlot(name)
	err = c.call("PUT status", slot, func() error {
		meta = nil
		known := c.server.at(slot)
		if known == nil {
			return apierrors.NewNotFound(r.GroupResource(), name)
		}
		now := v1alpha1.ResourceDistribution{}
		if err := json.Unmarshal(body, &now); err != nil {
			return err
		}
		if now.UID != known.meta.UID || now.ResourceVersion != known.meta.ResourceVersion {
			return apierrors.NewConflict(r.GroupResource(), name, errors.New("the object has been modified"))
		}
		o := known.clone()
		o.distribution.Status = now.Status
		meta = c.server.put(slot, o).meta
		c.countWrite(slot)
		return nil
	})
	return meta, err
}

func (c client) Metadata(_ context.Context, r schema.GroupVersionResource, namespace,
	name string) (meta *metav1.PartialObjectMetadata, err error) {
	slot := copies.Slot{Kind: kindOf(r), Namespace: namespace, Name: name}
	err = c.call("GET metadata", slot, func() error {
		meta = nil
		o := c.server.at(slot)
		if o == nil {
			return apierrors.NewNotFound(r.GroupResource(), name)
		}
		meta = o.meta.DeepCopy()
		return nil
	})
	return meta, err
}

func (c client) Object(_ context.Context, r schema.GroupVersionResource, slot copies.Slot) (object map[string]any, err error) {
	err = c.call("GET", slot, func() error {
		object = nil
		o := c.server.at(slot)
		if o == nil {
			return apierrors.NewNotFound(r.GroupResource(), slot.Name)
		}
		object = o.whole()
		return nil
	})
	return object, err
}

// listObstacles is the field List of the Requests of controllers/distribution.
func (c client) listObstacles(_ context.Context, of distribute.ObstacleWatch) (all []*metav1.PartialObjectMetadata, err error) {
	err = c.call("LIST", copies.Slot{Kind: of.Kind, Name: of.Name}, func() error {
		all = metasOf(c.server.list(isObstacle(&of)))
		return nil
	})
	return all, err
}

// admit refuses an object if its namespace is missing or terminating, or if admission refuses the object's kind in that namespace.
func (s *server) admit(r schema.GroupVersionResource, slot copies.Slot) error {
	switch n := s.forest.Namespace(slot.Namespace); {
	case n == nil:
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, slot.Namespace)
	case n.Terminating:
		err := apierrors.NewForbidden(r.GroupResource(), slot.Name, fmt.Errorf("namespace %s is being terminated", slot.Namespace))
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
		return err
	case s.denied[slotOfDenial(slot)]:
		return errDenied(r, slot)
	}
	return nil
}

// slotOfDenial returns the key that field denied has for all slots of a kind and namespace.
func slotOfDenial(slot copies.Slot) copies.Slot {
	return copies.Slot{Kind: slot.Kind, Namespace: slot.Namespace}
}

func errDenied(r schema.GroupVersionResource, slot copies.Slot) error {
	return apierrors.NewForbidden(r.GroupResource(), slot.Name, errors.New("a policy of the cluster says no"))
}

// parse reads the body of a request of the operator.
func (s *server) parse(slot copies.Slot, body []byte) *object {
	o := &object{meta: &metav1.PartialObjectMetadata{}}
	if err := errors.Join(json.Unmarshal(body, o.meta), json.Unmarshal(body, &o.rest)); err != nil {
		panic(fmt.Errorf("the operator has sent this for %s: %w", slot, err))
	}
	delete(o.rest, "metadata")
	o.meta.TypeMeta, o.meta.Namespace, o.meta.Name = metav1.TypeMeta{}, slot.Namespace, slot.Name
	s.version++
	o.written, o.from = s.version, o.meta.Labels[v1alpha1.LabelInheritedFrom]+o.meta.Labels[v1alpha1.LabelDistributedBy]
	o.meta.ManagedFields = []metav1.ManagedFieldsEntry{s.fieldsOf(v1alpha1.OperatorName, &o.meta.ObjectMeta)}
	return o
}

// kindOf returns the kind of a resource of the model.
func kindOf(r schema.GroupVersionResource) schema.GroupKind {
	for _, gvk := range copiedKinds {
		if resourceOf(gvk).Resource == r.Resource {
			return gvk.GroupKind()
		}
	}
	if r.Resource == "resourcedistributions" {
		return distributions
	}
	return namespaces
}

func textOf(version int) string { return strconv.Itoa(version) }

func numberOf(resourceVersion string) int {
	n, _ := strconv.Atoi(resourceVersion)
	return n
}
