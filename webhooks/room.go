package webhooks

import (
	"encoding/json"
	"io"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/budget"
)

// PathRoom is where room is made in the share of a namespace, before Kubernetes judges by it what is created there.
const PathRoom = "/room"

// roomHandler answers each review with yes, once the namespace has room for the object or will get none. It decides nothing: Kubernetes
// judges by the share. So where a review can't be read, it answers with an error of HTTP, which by failurePolicy Ignore refuses nothing.
type roomHandler struct{ makeRoom RoomMaker }

// ServeHTTP implements http.Handler.
func (h roomHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	review := admissionv1.AdmissionReview{}
	text, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(text, &review)
	}
	if err != nil || review.Request == nil {
		http.Error(w, "send an AdmissionReview of admission.k8s.io/v1 as JSON", http.StatusBadRequest)
		return
	}
	requests.WithLabelValues("room", "true").Inc()
	if req := review.Request; req.DryRun == nil || !*req.DryRun {
		needs, err := budget.NeedsOf(schema.GroupResource{Group: req.Resource.Group, Resource: req.Resource.Resource}, req.Object.Raw,
			req.OldObject.Raw)
		if err == nil && len(needs) > 0 {
			h.makeRoom(r.Context(), req.Namespace, needs)
		}
	}
	answer := admissionv1.AdmissionReview{TypeMeta: review.TypeMeta}
	answer.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // whoever asked may be gone
}
