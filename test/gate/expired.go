package gate

import (
	"encoding/json"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watchOf returns a key for what a watch shows, without the resourceVersion at which it begins.
func watchOf(r *http.Request) string {
	query := r.URL.Query()
	return r.URL.Path + "?" + query.Get("labelSelector") + "&" + query.Get("fieldSelector")
}

// expires reports whether r wants to continue a watch that has lost events. It reports so only once for each such watch.
func (g *Gate) expires(r *http.Request) bool {
	query := r.URL.Query()
	if query.Get("watch") != "true" || query.Get("sendInitialEvents") == "true" || query.Get("resourceVersion") == "" {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.expired[watchOf(r)]
	delete(g.expired, watchOf(r))
	return was
}

// tooOld answers as the API server does where the resourceVersion of a watch is compacted.
func tooOld(w http.ResponseWriter) {
	status := apierrors.NewResourceExpired("too old resource version").Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusGone)
	_ = json.NewEncoder(w).Encode(status) // a client that has gone needs no answer
}
