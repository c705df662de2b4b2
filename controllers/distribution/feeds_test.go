package distribution

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// feedOf is the feed of a controller that knows no distribution.
func feedOf(t *testing.T) (*distributionFeed, *Controller) {
	t.Helper()
	c, r := newReviewed(t)
	c.facts.runs.remove(r.name)
	c.facts.runs.setSynced(false)
	return &distributionFeed{c.facts.settings, c.facts.runs, c.facts.copies, c.queue}, c
}

func TestAnotherObjectOfTheNameIsAnotherRun(t *testing.T) {
	f, c := feedOf(t)
	f.replace([]*v1alpha1.ResourceDistribution{distributionOf("2", 1)})
	first := f.runs.find("rd")
	if first == nil || !f.runs.isSynced() {
		t.Fatal("the list is not in the tables")
	}
	f.put(distributionOf("2", 2))
	if f.runs.find("rd") != first || first.distribution().Generation != 2 {
		t.Error("another spec of the same object is not taken by its run")
	}
	f.put(distributionOf("3", 1))
	second := f.runs.find("rd")
	if second == nil || second == first || second.uid != "3" {
		t.Fatal("the new object has the run of the old one")
	}
	if _, _, ok := first.beginReview(); ok {
		t.Error("the object that is gone is still reviewed")
	}
	f.gone(distributionOf("2", 2))
	if f.runs.find("rd") != second {
		t.Error("the end of the old object has ended the new one")
	}
	of := second.distribution().Template.Family()
	f.gone(distributionOf("3", 1))
	if f.runs.find("rd") != nil || c.facts.copies.wantedBy[of] != nil {
		t.Error("the distribution is gone, and something is known of it")
	}
}

func TestAListForgetsWhatItLacks(t *testing.T) {
	f, _ := feedOf(t)
	f.put(distributionOf("2", 1))
	known := f.runs.find("rd")
	f.replace(nil)
	if f.runs.find("rd") != nil || !f.runs.isSynced() {
		t.Error("the distribution is not in the list, and still known")
	}
	if _, ok := known.planReport(known.distribution(), distribute.Review{}, true, &Timing{}); ok {
		t.Error("a status is written for what is gone")
	}
}

func TestAStatusThatSomebodyForgedIsReviewed(t *testing.T) {
	f, _ := feedOf(t)
	rd := distributionOf("2", 1)
	f.replace([]*v1alpha1.ResourceDistribution{rd})
	r := f.runs.find("rd")
	r.in.judged = r.in.Distribution
	forged := rd.DeepCopy()
	forged.ResourceVersion, forged.Status.Admitted = "9", "forged"
	f.put(forged)
	if f.runs.find("rd") != r || r.in.judged != nil || r.in.admitted != "forged" || r.in.resourceVersion != "9" {
		t.Error("what the gate was decided for counts although the status says otherwise")
	}
	if r.takeStatus(forged) {
		t.Error("the same status is news")
	}
}

func TestReadyWaitsForKinds(t *testing.T) {
	f, c := feedOf(t)
	if err := c.Ready(nil); err != nil {
		t.Errorf("got %v where the CRD is not there, want that nothing is waited for", err)
	}
	c.facts.settings.DegradedAfter = time.Hour
	f.runs.setServed(true, time.Now())
	if c.Ready(nil) == nil {
		t.Error("the process is ready before ResourceDistributions are known")
	}
	f.replace(nil)
	if err := c.Ready(nil); err != nil {
		t.Errorf("got %v, want that all is known", err)
	}
	one := c.facts.kinds.list()[0]
	one.state = copies.KindSyncing
	if c.Ready(nil) == nil {
		t.Error("the process is ready before copies are known")
	}
	if state, changed := c.facts.kinds.setState(one, watchset.Status{State: watchset.Degraded}); state != copies.KindDegraded || !changed {
		t.Error("a kind that was never listed degrades")
	}
	if err := c.Ready(nil); err != nil {
		t.Errorf("got %v, want that a kind that can't be listed holds up nothing", err)
	}
}

func TestAServerWithoutTheDefinition(t *testing.T) {
	f, c := feedOf(t)
	c.facts.settings.DegradedAfter = time.Hour
	s := &distributionSink{distributionFeed: f, served: make(chan struct{}, 1)}
	f.runs.setServed(true, time.Now())
	if c.Ready(nil) == nil {
		t.Error("the process is ready before it is known whether there are ResourceDistributions")
	}
	s.State("", watchset.Status{State: watchset.NotServed})
	if err := c.Ready(nil); err != nil || f.runs.isSynced() {
		t.Errorf("got %v, synced %t: nothing is awaited, and nothing is known to be gone that was never listed", err, f.runs.isSynced())
	}
	s.Replace("", "1", []client.Object{distributionOf("2", 1)})
	s.State("", watchset.Status{State: watchset.NotServed})
	if f.runs.find("rd") != nil || !f.runs.isSynced() {
		t.Error("the definition was deleted, and its objects are still known")
	}
}
