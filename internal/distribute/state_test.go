package distribute

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

type spec = v1alpha1.ResourceDistributionSpec

func conflictPolicy(p v1alpha1.ConflictPolicy) func(*spec) {
	return func(s *spec) { s.ConflictPolicy = p }
}

func reverts(s *spec) { s.DriftPolicy = v1alpha1.DriftRevert }
func orphans(s *spec) { s.DeletionPolicy = v1alpha1.DeletionOrphan }

func TestAStatusComesBeforeTheFirstCopy(t *testing.T) {
	c := newCluster(t, "d0")
	c.distribute("new")
	c.applyTo(c.events[0])
	request := c.applyTo(Started{Key{Distribution: "rd"}})
	look, ok := request.(ListObstacles)
	if !ok {
		t.Fatalf("got %T, want a look for obstacles before the first copy is made", request)
	}
	write, ok := c.applyTo(ObstaclesFound{ListObstacles: look}).(WriteStatus)
	if !ok || write.Status.Admitted == "" {
		t.Fatalf("got %+v, want a status that records that the check has passed", write)
	}
	if request = c.applyTo(Started{Key{"rd", "d0"}}); request != nil {
		t.Errorf("got %T before a restarted operator could know of the check", request)
	}
	c.applyTo(StatusWritten{WriteStatus: write, NewVersion: "1"})
	if request, ok := c.applyTo(Started{Key{"rd", "d0"}}).(WriteCopy); !ok || request.Action.Verb != Create {
		t.Errorf("got %+v, want the copy made", request)
	}
}

func TestAStatusOfAnOlderSpecOpensNoGate(t *testing.T) {
	c := newCluster(t, "d0")
	c.distribute("new")
	c.applyTo(c.events[0])
	look := c.applyTo(Started{Key{Distribution: "rd"}}).(ListObstacles)
	write := c.applyTo(ObstaclesFound{ListObstacles: look}).(WriteStatus)
	c.distribute("newer", conflictPolicy(v1alpha1.ConflictSkip))
	c.applyTo(c.events[1])
	c.applyTo(StatusWritten{WriteStatus: write, NewVersion: "1"})
	if request := c.applyTo(Started{Key{"rd", "d0"}}); request != nil {
		t.Errorf("got %+v, want that the newer spec is reviewed first", request)
	}
	if request := c.applyTo(ObstaclesFound{ListObstacles: look}); request != nil {
		t.Errorf("got %T for a look that was made for the older spec", request)
	}
}

func TestAnAnswerOlderThanTheList(t *testing.T) {
	t.Run("DIST-D116 a copy that a user deletes before the answer to its creation is created again, though a new list, not an Event, "+
		"showed its deletion", func(t *testing.T) {
		c := newCluster(t, "d0", "d1")
		c.refuse = func(_ Verb, slot copies.Slot) error {
			if slot.Namespace == "d1" {
				return apierrors.NewInternalError(errors.New("not now")) // so d1 has no copy, and the list's newest version is an old one
			}
			return nil
		}
		c.distribute("new")
		c.settle(0)
		c.remove("d0/settings")
		for len(c.events) > 0 {
			event := c.events[0]
			c.events = c.events[1:]
			c.applyTo(event)
		}
		request, is := c.applyTo(Started{Key{"rd", "d0"}}).(WriteCopy)
		if !is || request.Action.Verb != Create {
			t.Fatalf("got %+v, want the creation of a copy", request)
		}
		answer := c.writeCopy(request)
		c.remove("d0/settings")
		c.listCopies()
		c.applyTo(answer)
		c.settle(time.Minute)
		if diff := cmp.Diff(map[string]string{"d0": "new"}, c.data()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestDrift(t *testing.T) {
	edit := func(c *cluster) {
		object := map[string]any{}
		maps.Copy(object, c.objects["d0/settings"])
		object["data"] = map[string]any{"k": "edited"}
		c.write("d0", object, "somebody")
	}
	for name, tc := range map[string]struct {
		change func(*spec)
		want   string
	}{
		"DIST-D36 under Ignore an edit of a copy stays":        {func(*spec) {}, "edited"},
		"DIST-D39 under Revert an edit of a copy is corrected": {reverts, "new"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "d0")
			c.distribute("new", tc.change)
			c.settle(time.Minute)
			edit(c)
			c.settle(time.Minute)
			if diff := cmp.Diff(map[string]string{"d0": tc.want}, c.data()); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("an edit while nobody watched is found after a start", func(t *testing.T) {
		c := newCluster(t, "d0")
		c.distribute("new", reverts)
		c.settle(time.Minute)
		edit(c)
		c.start()
		c.settle(time.Minute)
		if diff := cmp.Diff(map[string]string{"d0": "new"}, c.data()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("an edit that metadata do not show is found by the scrub", func(t *testing.T) {
		c := newCluster(t, "d0")
		c.distribute("new", reverts)
		c.settle(time.Minute)
		object := c.objects["d0/settings"]
		object["data"] = map[string]any{"k": "edited"}
		meta := metadataOf(object)
		drift := DriftFound{slotOf(configMaps.GroupKind(), meta), string(meta.UID), meta.ResourceVersion}
		if d, known := c.state.FindUnchanged(drift.Slot, drift.UID, drift.ResourceVersion); known == nil || d.Holds(object, known.Foreign) {
			t.Fatalf("got %+v, want a copy that differs", known)
		}
		c.applyTo(drift)
		c.settle(time.Minute)
		if diff := cmp.Diff(map[string]string{"d0": "new"}, c.data()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("DIST-D42 of twenty edits in a row, five are corrected; then Event DriftLoop, and one loop in the metric; "+
		"DIST-D111 after DriftLoop the copy is not planned until the next allowed correction; if it is deleted, "+
		"it is created at once", func(t *testing.T) {
		c := newCluster(t, "d0")
		c.distribute("new", reverts)
		c.settle(time.Second)
		c.writes = nil
		for range 20 { // DIST-D111: work that never ends would fail here
			edit(c)
			c.settle(time.Second)
		}
		if len(c.writes) != 5 || !slices.Contains(c.reports, string(v1alpha1.ReasonDriftLoop)) {
			t.Errorf("%d repairs and Events %v, want 5, and a word about the loop", len(c.writes), c.reports)
		}
		if counts := c.state.CountAll(c.now); len(counts) != 1 || counts[0].Loops != 1 {
			t.Errorf("got %+v, want one loop", counts)
		}
		c.remove("d0/settings")
		c.settle(time.Second)
		if diff := cmp.Diff(map[string]string{"d0": "new"}, c.data()); diff != "" {
			t.Errorf("a copy that was deleted does not wait: %s", diff)
		}
	})
}

func TestADeletedDistributionLeavesNothingLocked(t *testing.T) {
	for name, tc := range map[string]struct {
		changes []func(*spec)
		before  string // the data of a stranger's object in d0
		want    map[string]string
	}{
		"its copies go with it":          {[]func(*spec){reverts}, "", map[string]string{}},
		"orphans stay, and are unlocked": {[]func(*spec){reverts, orphans}, "", map[string]string{"d0": "new"}},
		"an adopted object is handed back": {[]func(*spec){reverts, conflictPolicy(v1alpha1.ConflictAdoptIdentical)}, "new",
			map[string]string{"d0": "new"}},
		"an overwritten one, with what it has": {[]func(*spec){reverts, conflictPolicy(v1alpha1.ConflictOverwrite)}, "old",
			map[string]string{"d0": "new"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "d0")
			if tc.before != "" {
				c.stranger("d0", tc.before)
			}
			c.distribute("new", tc.changes...)
			c.settle(time.Minute)
			c.deleteDistribution()
			c.settle(time.Minute)
			if diff := cmp.Diff(tc.want, c.data()); diff != "" {
				t.Error(diff)
			}
			for _, object := range c.objects {
				if _, locked := metadataOf(object).Annotations[v1alpha1.AnnotationLocked]; locked {
					t.Error("a copy is still locked")
				}
			}
		})
	}
}

func TestDescribeRefusal(t *testing.T) {
	ofPolicy := apierrors.NewInvalid(configMaps.GroupKind(), "s", nil)
	ofPolicy.ErrStatus.Message =
		`configmaps "s" is forbidden: ValidatingAdmissionPolicy 'frozen' with binding 'frozen' denied request: frozen until the audit is over`
	ofPolicy.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "frozen until the audit is over"}}
	ofField := apierrors.NewInvalid(configMaps.GroupKind(), "s",
		field.ErrorList{field.Invalid(field.NewPath("data", "k"), "s3ntinel", "is wrong")})
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"DIST-D97 a refused copy is described by the policy's text": {ofPolicy, ofPolicy.ErrStatus.Message},
		"DIST-D97 a copy with a refused field is described by the field's path, without its " +
			"value": {ofField, "the API server refuses it as invalid: data.k"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := describeRefusal(c.err); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestALargeChangeIsReviewed(t *testing.T) {
	t.Run("DIST-D104 a change of the forest with more than 100 namespaces queues one review of RD; a small change queues its "+
		"target", func(t *testing.T) {
		c := newCluster(t, "d0")
		c.distribute("new")
		c.settle(time.Minute)
		change := ForestChanged{Old: c.forest, New: c.forest}
		for i := range mostPlanned + 1 {
			name := fmt.Sprintf("e%d", i)
			change.New = change.New.WithNamespace(&forest.Namespace{Name: name, UID: name})
			change.Namespaces = append(change.Namespaces, name)
		}
		if c.applyTo(change); !slices.Equal(c.queue, []Key{{Distribution: "rd"}}) {
			t.Errorf("got %d keys, want one review", len(c.queue))
		}
		c.settle(time.Minute)
		if len(c.data()) != mostPlanned+2 {
			t.Errorf("got %d copies, want %d", len(c.data()), mostPlanned+2)
		}
		small := ForestChanged{Old: change.New, New: change.New.WithNamespace(&forest.Namespace{Name: "f", UID: "f"}), Namespaces: []string{"f"}}
		if c.applyTo(small); !slices.Equal(c.queue, []Key{{"rd", "f"}}) {
			t.Errorf("got %v, want the target of a small change", c.queue)
		}
	})
}

func TestReadyWaitsForLists(t *testing.T) {
	c := newCluster(t)
	s := NewState(c.forest, c.state.options)
	if err := s.CheckSynced(c.now); err != nil {
		t.Errorf("got %v before anything is watched", err)
	}
	s.Apply(c.now, DefinitionChanged{})
	if s.CheckSynced(c.now) == nil {
		t.Error("the process is ready before it is known whether there are ResourceDistributions")
	}
	if err := s.CheckSynced(c.now.Add(time.Hour)); err == nil || err.Error() != "copies of ConfigMap are not synced yet" {
		t.Errorf("got %v, want that a list that does not end holds up nothing", err)
	}
	s.Apply(c.now, DefinitionChanged{watchset.Status{State: watchset.NotServed}})
	if err := s.CheckSynced(c.now); err != nil || s.listed {
		t.Errorf("got %v: nothing is awaited, and nothing is known to be gone that was never listed", err)
	}
	s.Apply(c.now, DefinitionChanged{synced})
	s.Apply(c.now, DistributionsListed{})
	if s.CheckSynced(c.now) == nil {
		t.Error("the process is ready before copies are known")
	}
	s.Apply(c.now, KindChanged{configMaps.GroupKind(), watchset.Status{State: watchset.Degraded}})
	if err := s.CheckSynced(c.now); err != nil {
		t.Errorf("got %v, want that a kind that can't be listed holds up nothing", err)
	}
}

// A kind can be unwatched for two causes, each with a remedy of its own, and the description names that remedy.
func TestDescribesWhyAKindIsNotWatched(t *testing.T) {
	for want, status := range map[string]watchset.Status{
		"repair what serves the kind":                 {State: watchset.Degraded, Err: errors.New("no answer")},
		"informers.maxInformers of the configuration": {State: watchset.Pending, Err: watchset.ErrLimit},
	} {
		c := newCluster(t, "d0")
		s := NewState(c.forest, c.state.options)
		s.Apply(c.now, KindChanged{configMaps.GroupKind(), status})
		if got := s.kinds.describeUnobserved(s.kinds.all[configMaps.GroupKind()]); !strings.Contains(got, want) {
			t.Errorf("described as %q, want %q", got, want)
		}
	}
}

func TestAStandbyKnowsEverythingAndQueuesNothing(t *testing.T) {
	c := newCluster(t, "d0")
	c.distribute("new")
	standby := NewState(c.forest, c.state.options)
	for _, input := range []Input{DefinitionChanged{}, KindChanged{configMaps.GroupKind(), synced}, DistributionsListed{}, c.events[0]} {
		for _, output := range standby.Apply(c.now, input) {
			t.Errorf("got %T from %T, want nothing", output, input)
		}
	}
	if out := standby.Apply(c.now, Elected{}); len(out) != 1 {
		t.Errorf("got %v, want the review queued", out)
	}
}
