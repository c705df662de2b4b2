package webhooks

import (
	"bytes"
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
	for _, raw := range [][]byte{req.Object.Raw, req.OldObject.Raw} {
		if err := checkSpec(k, raw); err != nil {
			return err
		}
	}
	switch req.Operation {
	case admissionv1.Create:
		return nil
	case admissionv1.Update, admissionv1.Delete:
		return checkIdentity(s, k, req)
	}
	return apierrors.NewBadRequest(fmt.Sprintf("operation %q is not judged; send CREATE, UPDATE or DELETE", req.Operation))
}

// mostTokens is how many names, values and brackets of JSON a spec of each kind may have: more than its schema lets it have, but for a
// ResourceDistribution's resource. An API server keeps to the schemas before it asks, and whoever makes a review up doesn't: each entry
// of a list may cost a question, and a sentence in the answer.
var mostTokens = map[kind]tokens{kindLNamespace: 8_000, kindSubNamespace: 8_000, kindHierarchy: 8_000, kindDistribution: 50_000}

// tokens counts what a value has. It is a sum, where a field stands twice.
type tokens int

// UnmarshalJSON implements json.Unmarshaler.
func (n *tokens) UnmarshalJSON(raw []byte) error {
	for d := json.NewDecoder(bytes.NewReader(raw)); ; *n++ {
		if _, err := d.Token(); err != nil {
			return nil //nolint:nilerr // the end: raw was found to be JSON before
		}
	}
}

// checkSpec refuses an object whose spec is longer than any schema lets it be.
func checkSpec(k kind, raw []byte) error {
	var object struct {
		Spec tokens `json:"spec"`
	}
	if most, bounded := mostTokens[k]; bounded && json.Unmarshal(raw, &object) == nil && object.Spec > most {
		return apierrors.NewBadRequest(fmt.Sprintf("spec of the review's object has %d names, values and brackets; send at most %d", object.Spec, most))
	}
	return nil // who decodes what is no JSON says what is wrong
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
