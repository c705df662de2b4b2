package webhooks

import (
	"encoding/json"
	"io"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/warren-tenancy/warren/internal/budget"
)

// PathRoom is where room is made in the share of a namespace, before Kubernetes judges by it what is created there.
const PathRoom = "/room"

// roomHandler answers each review with yes, once the namespace has room for the object or will get none. It decides nothing: Kubernetes
// judges by the share. So where a review can't be read, it answers with an error of HTTP, which by failurePolicy Ignore refuses nothing.
type roomHandler struct{ makeRoom RoomMaker }

// ServeHTTP implements http.Handler.
func (h roomHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	review, needs, err := readRoomReview(r.Body)
	if err != nil {
		http.Error(w, "send an AdmissionReview of admission.k8s.io/v1 as JSON", http.StatusBadRequest)
		return
	}
	_ = r.Body.Close() // a review that waits keeps no other from being read
	requests.WithLabelValues("room", "true").Inc()
	if len(needs) > 0 {
		h.makeRoom(r.Context(), review.Request.Namespace, needs)
	}
	answer := admissionv1.AdmissionReview{TypeMeta: review.TypeMeta}
	answer.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // whoever asked may be gone
}

// roomReview is what is read of an AdmissionReview. It has no lists, because in three bytes of text a forged review may have an entry.
type roomReview struct {
	metav1.TypeMeta
	Request *struct {
		UID               types.UID
		Resource          metav1.GroupVersionResource
		Namespace         string
		DryRun            bool
		Object, OldObject json.RawMessage
	}
}

// readRoomReview returns a review without its objects, and what the object needs; nothing for a dry run, or if the object can't be read.
func readRoomReview(from io.Reader) (review roomReview, needs budget.Amounts, err error) {
	text, err := io.ReadAll(from)
	if err == nil {
		err = json.Unmarshal(text, &review)
	}
	if err == nil && review.Request == nil {
		err = errNotJSON
	}
	if err != nil {
		return review, nil, err
	}
	req := review.Request
	if !req.DryRun {
		needs, _ = budget.NeedsOf(schema.GroupResource{Group: req.Resource.Group, Resource: req.Resource.Resource}, req.Object, req.OldObject)
	}
	req.Object, req.OldObject = nil, nil
	return review, needs, nil
}
