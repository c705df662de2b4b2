package distribution

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
)

// newReviewed returns a controller that knows one distribution, to namespace d1, and an API server that nobody answers for: what
// sends a request fails.
func newReviewed(t *testing.T) (*Controller, *run) {
	t.Helper()
	secrets := corev1.SchemeGroupVersion.WithKind("Secret")
	settings := Settings{Settings: distribute.Settings{Kinds: []schema.GroupVersionKind{secrets}, Protected: func(string) bool { return false }}}
	c, err := New(Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}, Index: view.New(forest.Rules{}), Timing: DefaultTiming()}, settings)
	if err != nil {
		t.Fatal(err)
	}
	c.Index.Observe(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "d1", UID: "1", ResourceVersion: "1"}})
	c.synced = true
	c.kinds[secrets.GroupKind()] = &kind{GroupVersionKind: secrets, state: kindActive}
	r := newRun(readDistribution(1, settings), v1alpha1.ResourceDistributionStatus{})
	c.runs["rd"] = r
	return c, r
}

func readDistribution(generation int64, s Settings) *distribute.Distribution {
	return distribute.Read(&v1alpha1.ResourceDistribution{
		ObjectMeta: metav1.ObjectMeta{Name: "rd", UID: "2", Generation: generation},
		Spec: v1alpha1.ResourceDistributionSpec{
			Resource: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`)},
		},
	}, s.Settings)
}

func TestNothingIsWrittenBeforeItsReview(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*Controller, *run)
		want   bool
	}{
		"Reviewed":   {"the review has opened the gate", func(*Controller, *run) {}, true},
		"New":        {"after a start nobody knows what a roll-out holds back", func(_ *Controller, r *run) { r.judged = nil }, false},
		"Changed":    {"the gate is that of an older spec", func(c *Controller, r *run) { r.Distribution = readDistribution(2, c.settings) }, false},
		"Unreported": {"a restart would not know of the gate", func(_ *Controller, r *run) { r.unreported = true }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, r := newReviewed(t)
			r.judged, r.gate.Create = r.Distribution, true
			tc.change(c, r)
			if _, got := c.planWork(r, "d1"); got != tc.want {
				t.Errorf("%s: a write is planned: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

func TestAStatusSpeaksOfWhatWasReviewed(t *testing.T) {
	c, r := newReviewed(t)
	reviewed := r.Distribution
	r.Distribution = readDistribution(2, c.settings)
	if c.report(t.Context(), r, reviewed, distribute.Review{Checked: true}, true) {
		t.Error("a status of the older spec counts as written")
	}
	if !r.lastSaid.IsZero() {
		t.Error("a status of the newer spec was written with what was found for the older one")
	}
}
