// Package rights runs histories of what internal/grants, internal/authority and internal/forest decide. For grants, the API server,
// people, faults and time are a model: a pass of the operator rests on an old view, its requests fail or their answers are lost. The
// lists of tenants change between any two of its requests. For moves, people ask for other places in the forest. The webhook judges them
// by the forest that it sees and the rights that they hold.
//
// One seed decides everything. After each write the invariants are checked, and at the end the rights must be those of the lists. The
// package computes a second time which users hold a right, which namespaces are above a namespace, and what the rules of a pair may
// allow.
package rights

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// Failure is what is wrong in a history.
type Failure struct {
	// Invariant is the number in docs/behaviour/faults.md.
	Invariant, Text string
}

func (f *Failure) Error() string { return f.Invariant + ": " + f.Text }

func fail(invariant, format string, args ...any) {
	panic(&Failure{invariant, fmt.Sprintf(format, args...)})
}

var (
	errRefused = errors.New("503")
	errLost    = errors.New("no answer, but done")
	errStale   = errors.New("409")
)

// server is a model of the API server: objects with a UID and a resourceVersion.
type server struct {
	objects  grants.Actual
	versions []grants.Actual // after each change; none is ever changed
	version  int
	ours     map[types.UID]bool // the objects that the operator has made
}

func newServer() *server {
	return &server{objects: grants.Actual{}, versions: []grants.Actual{{}}, ours: map[types.UID]bool{}}
}

// put stores an object, nil to delete it.
func (s *server) put(key grants.Key, object grants.Object) grants.Object {
	s.version++
	if object != nil {
		object = object.DeepCopyObject().(grants.Object)
		object.SetResourceVersion(strconv.Itoa(s.version))
		if object.GetUID() == "" {
			object.SetUID(types.UID("uid-" + strconv.Itoa(s.version)))
		}
	}
	s.objects = maps.Clone(s.objects)
	s.objects.Put(key, object)
	s.versions = append(s.versions, s.objects)
	return object
}

// view returns the objects as they were some changes ago.
func (s *server) view(age int) grants.Actual {
	return maps.Clone(s.versions[max(0, len(s.versions)-1-age)])
}

// carryOut carries out a request of the operator, and returns the object that is there then.
func (s *server) carryOut(key grants.Key, next grants.Write) (grants.Object, error) {
	existing := s.objects[key]
	switch {
	case next.Verb == grants.WriteCreate && existing != nil:
		return nil, errStale
	case next.Verb == grants.WriteCreate:
		made := s.put(key, next.Object)
		s.ours[made.GetUID()] = true
		return made, nil
	case existing == nil || existing.GetUID() != next.Object.GetUID():
		return nil, errStale
	case (next.Verb == grants.WriteUpdate || next.Unchanged) && existing.GetResourceVersion() != next.Object.GetResourceVersion():
		return nil, errStale
	}
	s.checkOurs(key, existing, next)
	if next.Verb == grants.WriteUpdate {
		return s.put(key, next.Object), nil
	}
	return s.put(key, nil), nil
}

// checkOurs: FLT-M13. What somebody else has made is neither written nor deleted, and no request changes a roleRef.
func (s *server) checkOurs(key grants.Key, existing grants.Object, next grants.Write) {
	if !s.ours[existing.GetUID()] {
		fail("FLT-M13", "%s is somebody else's, and the operator sends a request to %s it", key, next.Verb)
	}
	if next.Verb == grants.WriteUpdate && grants.MustRecreate(existing, next.Object) {
		fail("FLT-M13", "%s gets another roleRef, which the API server refuses", key)
	}
}

// collect deletes an object that has owners, none of which exists, as the garbage collector does. It reports whether there was one.
func (s *server) collect(exists func(types.UID) bool) bool {
	for _, key := range s.keys() {
		owners := s.objects[key].GetOwnerReferences()
		if gone := !slices.ContainsFunc(owners, func(o owner) bool { return exists(o.UID) }); len(owners) > 0 && gone {
			s.put(key, nil)
			return true
		}
	}
	return false
}

func (s *server) keys() []grants.Key {
	return slices.SortedFunc(maps.Keys(s.objects), func(a, b grants.Key) int { return compare(a.String(), b.String()) })
}

// right is what one subject may do in one tenant by one of its lists.
type right struct {
	tenant, list, subject string
}

// listsOf names the lists whose rights a binding gives, by its label access.
var listsOf = map[string][]string{
	v1alpha1.AccessUsers: {"users"}, v1alpha1.AccessEdit: {"managers"}, v1alpha1.AccessSudo: {"sudoers"},
	v1alpha1.AccessSole: {"managers", "sudoers"},
}

// rightsIn returns the rights that the objects give, by the labels and subjects of the bindings alone.
func rightsIn(objects grants.Actual) map[right]bool {
	all := map[right]bool{}
	for _, object := range objects {
		if _, isRole := object.(*rbacv1.ClusterRole); isRole {
			continue
		}
		tenant := object.GetLabels()[v1alpha1.LabelTenant]
		for _, list := range listsOf[object.GetLabels()[v1alpha1.LabelAccess]] {
			for _, subject := range grants.Subjects(object) {
				if subject.Name != v1alpha1.SudoersGroup(tenant) {
					all[right{tenant, list, subject.Kind + " " + subject.Name}] = true
				}
			}
		}
	}
	return all
}
