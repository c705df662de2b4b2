package distribution

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

var secrets = corev1.SchemeGroupVersion.WithKind("Secret")

// newReviewed returns a controller that knows one distribution, to namespace d1, and an API server that nobody answers for: what
// sends a request fails.
func newReviewed(t *testing.T) (*Controller, *run) {
	t.Helper()
	settings := Settings{
		Settings: distribute.Settings{Kinds: []schema.GroupVersionKind{secrets}, Protected: func(string) bool { return false }},
		Covered:  func(schema.GroupKind) bool { return false },
	}
	c, err := New(Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}, View: view.New(forest.Rules{}), Timing: DefaultTiming()}, settings)
	if err != nil {
		t.Fatal(err)
	}
	c.View.Observe(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "d1", UID: "1", ResourceVersion: "1"}})
	c.facts.runs.setSynced(true)
	c.facts.kinds.setState(c.facts.kinds.list()[0], watchset.Status{State: watchset.Synced})
	r := newRun(readDistribution(1, settings), v1alpha1.ResourceDistributionStatus{})
	c.facts.runs.put(r)
	return c, r
}

// distributionOf is the ResourceDistribution rd of Secret s.
func distributionOf(uid string, generation int64) *v1alpha1.ResourceDistribution {
	return &v1alpha1.ResourceDistribution{
		ObjectMeta: metav1.ObjectMeta{Name: "rd", UID: types.UID(uid), Generation: generation},
		Spec: v1alpha1.ResourceDistributionSpec{
			Resource: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`)},
		},
	}
}

func readDistribution(generation int64, s Settings) *distribute.Distribution {
	return distribute.Read(distributionOf("2", generation), s.Settings)
}

func TestNothingIsWrittenBeforeItsReview(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*Controller, *run)
		want   bool
	}{
		"Reviewed": {"the review has opened the gate", func(*Controller, *run) {}, true},
		"New":      {"after a start nobody knows what a roll-out holds back", func(_ *Controller, r *run) { r.in.judged = nil }, false},
		"Changed": {"the gate is that of an older spec", func(c *Controller, r *run) {
			r.takeSpec(readDistribution(2, *c.facts.settings), v1alpha1.ResourceDistributionStatus{})
		}, false},
		"Unreported": {"a restart would not know of the gate", func(_ *Controller, r *run) { r.in.unreported = true }, false},
		"Dropped":    {"there is no such distribution any more", func(_ *Controller, r *run) { r.drop() }, false},
		"Unsynced":   {"other distributions are not known yet", func(c *Controller, _ *run) { c.facts.runs.setSynced(false) }, false},
		"Pending": {"the kind is not served", func(c *Controller, _ *run) {
			c.facts.kinds.setState(c.facts.kinds.all[secrets.GroupKind()], watchset.Status{State: watchset.NotServed})
		}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, r := newReviewed(t)
			r.in.judged, r.in.gate.Create = r.in.Distribution, true
			tc.change(c, r)
			if _, got := r.planWrite(c.facts, "d1"); got != tc.want {
				t.Errorf("%s: a write is planned: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

func TestAStatusSpeaksOfWhatWasReviewed(t *testing.T) {
	c, r := newReviewed(t)
	reviewed := r.distribution()
	r.takeSpec(readDistribution(2, *c.facts.settings), v1alpha1.ResourceDistributionStatus{})
	if c.reviews.statuses.report(t.Context(), r, reviewed, distribute.Review{Checked: true}, true) {
		t.Error("a status of the older spec counts as written")
	}
	if !r.in.reportedAt.IsZero() {
		t.Error("a status of the newer spec was written with what was found for the older one")
	}
}

func TestAReviewLooksBeforeItJudges(t *testing.T) {
	c, r := newReviewed(t)
	d, snapshot := r.distribution(), c.View.Snapshot()
	if _, next := r.judge(c.facts, snapshot, d, false); next != mustLook {
		t.Fatalf("got step %d, want a look for obstacles before the first copy is made", next)
	}
	r.noteLook(map[string]*distribute.Obstacle{})
	j, next := r.judge(c.facts, snapshot, d, true)
	if next != judged || !j.urgent || len(j.found.Results) != 1 || j.found.Results[0].Verb != distribute.Create {
		t.Fatalf("got step %d and %+v, want the copy in d1, and that said before it is made", next, j)
	}
	if _, ok := r.planWrite(c.facts, "d1"); ok {
		t.Error("a write is planned before a restart could know of the check that has passed")
	}
	r.noteReported()
	if keys := r.findWrites(j.found.Results); len(keys) != 1 || keys[0] != (key{"rd", "d1"}) {
		t.Errorf("got %v, want the key of d1", keys)
	}
	r.noteOpen("d1")
	if keys := r.findWrites(j.found.Results); len(keys) != 0 {
		t.Errorf("got %v for what is queued already, want none", keys)
	}
	r.takeSpec(readDistribution(2, *c.facts.settings), v1alpha1.ResourceDistributionStatus{})
	if _, next := r.judge(c.facts, snapshot, d, true); next != overtaken {
		t.Errorf("got step %d for an older spec, want that it is overtaken", next)
	}
}

func TestADroppedRunWatchesNothing(t *testing.T) {
	_, r := newReviewed(t)
	w := r.noteObstacle("d1", &distribute.Obstacle{UID: "o"})
	if w == nil {
		t.Fatal("an obstacle is there, and nobody watches it")
	}
	if r.noteObstacle("d1", &distribute.Obstacle{UID: "o"}) != nil {
		t.Error("a second watch begins")
	}
	r.drop()
	if w.ctx.Err() == nil {
		t.Error("the watch goes on although the distribution is gone")
	}
	if r.noteObstacle("d1", &distribute.Obstacle{UID: "o"}) != nil {
		t.Error("a watch begins although the distribution is gone: nobody would ever end it")
	}
}

func TestObstaclesKeepWhatAnEarlierLookHasShown(t *testing.T) {
	_, r := newReviewed(t)
	examined := &distribute.Obstacle{UID: "o", ResourceVersion: "1", Examined: true}
	w := r.noteObstacle("d1", examined)
	r.noteObstacle("d2", &distribute.Obstacle{UID: "p", ResourceVersion: "1"})
	freed := r.replaceObstacles(w, map[string]*distribute.Obstacle{"d1": {UID: "o", ResourceVersion: "1"}})
	if len(freed) != 1 || freed[0] != "d2" || !r.in.obstacles["d1"].Examined || !w.synced {
		t.Errorf("got %v freed and %+v, want d2, and d1 as it was examined", freed, r.in.obstacles["d1"])
	}
	r.replaceObstacles(w, map[string]*distribute.Obstacle{"d1": {UID: "o", ResourceVersion: "2"}})
	if r.in.obstacles["d1"].Examined {
		t.Error("another version counts as examined")
	}
	r.changeObstacle("d1", forgetObstacle)
	if len(r.in.obstacles) != 0 {
		t.Error("the obstacle is still there")
	}
}

func TestReviewsArePutOffWhileWritesWait(t *testing.T) {
	c, r := newReviewed(t)
	now := r.began()
	r.noteOpen("d1")
	if idle, late := r.dueForReview(now, c.Timing.Pace); idle || !late {
		t.Errorf("got idle %t, late %t; want one review put off", idle, late)
	}
	if idle, late := r.dueForReview(now, c.Timing.Pace); idle || late {
		t.Errorf("got idle %t, late %t; want that the one put off is enough", idle, late)
	}
	r.planWrite(c.facts, "d1")
	if idle, _ := r.dueForReview(now, c.Timing.Pace); !idle {
		t.Error("nothing is queued, and no review is due")
	}
}

func TestALargeChangeIsReviewed(t *testing.T) {
	t.Run("DIST-D104 by a worker, and nothing is planned under the view's lock", func(t *testing.T) {
		c, r := newReviewed(t)
		c.queue.Lead()
		change := view.Change{Old: c.View.Snapshot(), New: c.View.Snapshot()}
		for range mostPlanned + 1 {
			change.Namespaces = append(change.Namespaces, "d1")
		}
		c.queueAffected(change)
		var got key
		if c.queue.WorkOne(func(k key) (inVain bool) { got = k; return false }); got != (key{distribution: "rd"}) || c.queue.Len() != 0 || len(r.in.open) != 0 {
			t.Errorf("%v is queued, and %d more: want one review", got, c.queue.Len())
		}
		change.Namespaces = []string{"d1"}
		c.queueAffected(change)
		if c.queue.WorkOne(func(k key) (inVain bool) { got = k; return false }); got != (key{"rd", "d1"}) {
			t.Errorf("%v is queued, want the target of a small change", got)
		}
	})
}
