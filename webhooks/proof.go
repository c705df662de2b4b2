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

	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/internal/forest"
)

// checkReviewGenuine refuses a review that no API server would send to the path that judges kind k. It also refuses one
// about an existing object if the sender doesn't know the object's UID. Unless --webhook-client-ca is set, the port
// answers everybody who reaches it: without this check, the sender of a made-up review would learn the names of other
// people's namespaces.
func checkReviewGenuine(s *forest.Snapshot, k kind, req admission.Request) error {
	if req.Kind.Group != k.group || req.Kind.Kind != k.name || req.Resource.Resource != k.resource || req.SubResource != "" {
		return apierrors.NewBadRequest(fmt.Sprintf("this path judges requests about %s of API group %q, without a subresource; the review "+
			"is about kind %q of group %q, resource %q, subresource %q; call the path of that kind, and send no subresource",
			k.resource, k.group, req.Kind.Kind, req.Kind.Group, req.Resource.Resource, req.SubResource))
	}
	for _, raw := range [][]byte{req.Object.Raw, req.OldObject.Raw} {
		if err := checkSpecLength(k, raw); err != nil {
			return err
		}
		if err := checkAmounts(k, raw); err != nil {
			return err
		}
	}
	switch req.Operation {
	// A creation is about no object that exists, so there is no UID to know.
	case admissionv1.Create:
		return nil
	case admissionv1.Update, admissionv1.Delete:
		return checkObjectUID(s, k, req)
	}
	return apierrors.NewBadRequest(fmt.Sprintf("operation %q is not judged; send CREATE, UPDATE or DELETE", req.Operation))
}

// mostTokens is how many names, values and brackets of JSON the spec of each kind may have. Its schema allows fewer (a
// ResourceDistribution's resource aside). An API server checks the schema before it asks a validating webhook, but the
// sender of a made-up review doesn't. Each entry of a list may cost a question to the authorizer and a sentence in the
// answer.
var mostTokens = map[kind]tokens{kindLNamespace: 8_000, kindSubNamespace: 8_000, kindHierarchy: 8_000, kindDistribution: 50_000,
	kindSudoRequest: 1_000}

// tokens counts the JSON tokens of a value. Where the JSON holds spec twice, the count is the sum of both.
type tokens int

// UnmarshalJSON implements json.Unmarshaler.
func (n *tokens) UnmarshalJSON(raw []byte) error {
	for d := json.NewDecoder(bytes.NewReader(raw)); ; *n++ {
		if _, err := d.Token(); err != nil {
			return nil //nolint:nilerr // the end: raw was found to be JSON before
		}
	}
}

// checkSpecLength refuses an object whose spec has more JSON tokens than mostTokens allows for its kind.
func checkSpecLength(k kind, raw []byte) error {
	var object struct {
		Spec tokens `json:"spec"`
	}
	if most, bounded := mostTokens[k]; bounded && json.Unmarshal(raw, &object) == nil && object.Spec > most {
		return apierrors.NewBadRequest(fmt.Sprintf("spec of the review's object has %d names, values and brackets; send at most %d", object.Spec,
			most))
	}
	return nil // text that is no JSON is left to the decoder, whose error describes what is wrong
}

// checkObjectUID compares the UID of the object that a review is about with the UID that the forest knows. Only a user
// who may read the object knows its UID, and nobody can guess it. The refusal asks to try again, because the forest may
// not know the object of an honest client yet.
func checkObjectUID(s *forest.Snapshot, k kind, req admission.Request) error {
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
	if k == kindDistribution || k == kindSudoRequest {
		return nil // the forest holds none of them; the handler asks the API server
	}
	if known := knownObjectUID(s, k, &old); known == "" || known != string(old.UID) {
		return askToRetry("the operator has not seen " + strings.ToLower(k.name) + " " + old.Name + " with this UID yet; try again in a second")
	}
	return nil
}

// knownObjectUID returns the UID by which the forest knows an object; "" if it knows no such object.
func knownObjectUID(s *forest.Snapshot, k kind, object *metav1.PartialObjectMetadata) string {
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

// longAmounts reports whether one of several quantities has a long exponent.
type longAmounts bool

// UnmarshalJSON implements json.Unmarshaler.
func (l *longAmounts) UnmarshalJSON(raw []byte) error {
	*l = *l || longAmounts(budget.HasLongExponent(raw))
	return nil
}

// checkAmounts refuses an LNamespace with an amount that would occupy the decoder for hours. Its schema refuses it, too, but an API server
// asks the webhook of defaults first.
func checkAmounts(k kind, raw []byte) error {
	var object struct {
		Spec struct {
			Limits struct{ Hard longAmounts }
		}
		Status struct {
			Budget struct{ Hard, Used, Free longAmounts }
		}
	}
	if k != kindLNamespace {
		return nil
	}
	_ = json.Unmarshal(raw, &object) // text that is no JSON is left to the decoder
	if is := object.Status.Budget; bool(object.Spec.Limits.Hard || is.Hard || is.Used || is.Free) {
		return apierrors.NewBadRequest("an amount of spec.limits.hard or of status.budget has an exponent of more than two digits; send a " +
			"smaller one, such as 5G")
	}
	return nil
}
