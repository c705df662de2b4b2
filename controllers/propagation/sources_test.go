package propagation

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// sourcesOf are sources over tables with Secret acme/db, which selects its namespaces so, before an API server that answers every GET so. reads
// counts them.
func sourcesOf(t *testing.T, selector string, status int, answer map[string]any) (s *sources, reads *int) {
	t.Helper()
	reads = new(int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		*reads++
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	writer, err := copying.NewWriter(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	tb := tablesOf()
	source := object("acme", "u1", "7", optedIn)
	if selector != "" {
		source.Annotations = map[string]string{v1alpha1.AnnotationSelect: selector}
	}
	tb.putObject(fromSources, source)
	r, _, _ := removalsOf(tb)
	served := &kinds{runs: map[schema.GroupKind]*kindRun{secretKind.GroupKind(): {mapping: &meta.RESTMapping{Resource: corev1.SchemeGroupVersion.WithResource("secrets")}}}}
	return &sources{
		tables: tb, facts: facts{tb}, kinds: served, queue: r.queue, bodies: newBodies(), writer: writer, troubles: r.troubles, measure: newMeasure(),
	}, reads
}

func TestCheckSource(t *testing.T) {
	secret := func(uid string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{
			"namespace": "acme", "name": "db", "uid": uid, "resourceVersion": "7", "labels": map[string]any{v1alpha1.LabelPropagate: v1alpha1.ModeUpdate},
		}}
	}
	gone := map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": "gone"}
	for name, test := range map[string]struct {
		selector      string
		status        int
		answer        map[string]any
		reads, queued int
	}{
		"PROP-S6 a source that a slot asks for is read, and the slot is queued": {status: http.StatusOK, answer: secret("u1"), reads: 1, queued: 1},
		"PROP-S6 a source that selects nothing is not read":                     {selector: "none=here", status: http.StatusOK, answer: secret("u1"), queued: 1},
		"PROP-S6 a read that finds nothing is not repeated by the slots":        {status: http.StatusNotFound, answer: gone, reads: 1},
		"PROP-S6 nor is one that finds another object":                          {status: http.StatusOK, answer: secret("u2"), reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, reads := sourcesOf(t, test.selector, test.status, test.answer)
			s.checkSource(t.Context(), secretsIn("acme"))
			if *reads != test.reads || s.queue.Len() != test.queued {
				t.Errorf("%d reads, %d keys queued, want %d and %d", *reads, s.queue.Len(), test.reads, test.queued)
			}
		})
	}
}

// After a start, copies in mode create count by the size of their source, which must be read for that.
func TestLimitCountsUnreadSources(t *testing.T) {
	limit := int64(1000)
	tb := tablesUnder(forest.Rules{Limits: v1alpha1.Limits{Bytes: &limit}})
	w := tb.in.world
	w.PutSource(secretsIn("acme"), &propagate.Source{UID: "1", Mode: v1alpha1.ModeCreate, Created: 1})
	hash := propagate.Hash{Mode: v1alpha1.ModeCreate, Place: propagate.PlaceOf(secretsIn("a"), "acme"), Content: "x"}
	w.PutCopy(secretsIn("a"), &propagate.Copy{Ours: true, From: "acme", UID: "c", ResourceVersion: "1", Hash: hash})
	young := secretsIn("acme")
	young.Name = "young"
	w.PutSource(young, &propagate.Source{UID: "2", Mode: v1alpha1.ModeUpdate, Created: 2, Content: "y", Size: 600})
	s := &sources{facts: facts{tb}}
	if !s.isNeeded(secretsIn("acme")) {
		t.Error("the source is not read")
	}
	w.NoteContent(secretsIn("acme"), w.Sources.At(secretsIn("acme")), &propagate.Body{Content: "x", Size: 600})
	if got := w.Plan(young.At("a")).Reason; got != v1alpha1.ReasonLimitExceeded {
		t.Errorf("reason %q when 600 of 1000 bytes are used up, and 600 more are wanted", got)
	}
}
