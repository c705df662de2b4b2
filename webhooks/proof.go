package webhooks

import (
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/warren-tenancy/warren/internal/forest"
)

// checkReview refuses a review that no API server would send to the path that judges kind k, and one about an object that
// exists whose sender doesn't know the object's UID. Unless --webhook-client-ca is set, the port answers everybody who
// reaches it, and without this check a made-up review would be told the names of a stranger's namespaces.
func checkReview(s *forest.Snapshot, k kind, req admission.Request) error {
	if req.Kind.Group != k.group || req.Kind.Kind != k.name || req.Resource.Resource != k.resource || req.SubResource != "" {
		return apierrors.NewBadRequest(fmt.Sprintf("this path judges requests about %s; the review is about kind %q, resource %q; call the path of that kind",
			k.resource, req.Kind.Kind, req.Resource.Resource))
	}
	switch req.Operation {
	case admissionv1.Create:
		return nil
	case admissionv1.Update, admissionv1.Delete:
		return checkIdentity(s, k, req)
	}
	return apierrors.NewBadRequest(fmt.Sprintf("operation %q is not judged; send CREATE, UPDATE or DELETE", req.Operation))
}

// checkIdentity compares the UID of the object that a review is about with the UID that the forest knows. Who may read
// the object knows it, and nobody else can guess it. Where the forest is merely behind, the client is asked to try again.
func checkIdentity(s *forest.Snapshot, k kind, req admission.Request) error {
	var old, now metav1.PartialObjectMetadata
	if err := json.Unmarshal(req.OldObject.Raw, &old); err != nil {
		return apierrors.NewBadRequest("oldObject of the review can't be read: " + err.Error())
	}
	if req.Operation == admissionv1.Update {
		if err := json.Unmarshal(req.Object.Raw, &now); err != nil {
			return apierrors.NewBadRequest("object of the review can't be read: " + err.Error())
		}
		if now.Name != old.Name || now.Namespace != old.Namespace {
			return apierrors.NewBadRequest("object and oldObject of the review have different names; send two versions of one object")
		}
	}
	if k == kindDistribution {
		return nil // the forest knows none; its handler asks the API server
	}
	if known := knownUID(s, k, &old); known == "" || known != string(old.UID) {
		return notYet(strings.ToLower(k.name) + " " + old.Name + " is not known yet in this form; try again")
	}
	return nil
}

// knownUID is the UID that the forest knows an object by, "" if it knows no such object.
func knownUID(s *forest.Snapshot, k kind, object *metav1.PartialObjectMetadata) string {
	switch k {
	case kindNamespace:
		if n := s.Namespace(object.Name); n != nil {
			return n.UID
		}
	case kindLNamespace:
		if t := s.Tenant(object.Name); t != nil {
			return t.UID
		}
	case kindSubNamespace:
		if sub := s.Sub(object.Namespace, object.Name); sub != nil {
			return sub.UID
		}
	case kindHierarchy:
		if h := s.Hierarchy(object.Namespace); h != nil {
			return h.UID
		}
	}
	return ""
}
