package webhooks

import (
	"encoding/json"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/warren-tenancy/warren/internal/forest"
)

// proven says whether a request about something that exists comes from somebody who knows it: its UID is no secret of
// those who may read it, and nobody else can guess it. The webhooks' port is open to everybody, so without this a review
// that somebody made up himself would be told the names of a stranger's namespaces. Where the forest is merely behind,
// the API server comes again.
func proven(s *forest.Snapshot, req admission.Request) error {
	if req.Operation == admissionv1.Create || len(req.OldObject.Raw) == 0 {
		return nil
	}
	old := metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(req.OldObject.Raw, &old); err != nil {
		return nil //nolint:nilerr // the handler's own decoder tells
	}
	known := ""
	switch req.Kind.Kind {
	case "Namespace":
		if n := s.Namespace(old.Name); n != nil {
			known = n.UID
		}
	case "LNamespace":
		if t := s.Tenant(old.Name); t != nil {
			known = t.UID
		}
	case "SubNamespace":
		if sub := s.Sub(old.Namespace, old.Name); sub != nil {
			known = sub.UID
		}
	default:
		return nil
	}
	if known == "" || known != string(old.UID) {
		return notYet(strings.ToLower(req.Kind.Kind) + " " + old.Name + " is not known yet in this form; try again")
	}
	return nil
}
