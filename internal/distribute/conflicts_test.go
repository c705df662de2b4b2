package distribute

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

func TestConflicts(t *testing.T) {
	for name, tc := range map[string]struct {
		policy v1alpha1.ConflictPolicy
		theirs string // the data of a stranger's object in d1
		writes []string
		data   map[string]string
		ready  v1alpha1.Reason
	}{
		"DIST-D21 under Fail an obstacle in one target prevents the copy in the other": {
			v1alpha1.ConflictFail, "theirs", nil, map[string]string{"d1": "theirs"}, v1alpha1.ReasonConflict,
		},
		"DIST-D27 under Skip an obstacle in one target leaves the copy in the other": {
			v1alpha1.ConflictSkip, "theirs", []string{"create d0"}, map[string]string{"d0": "new", "d1": "theirs"}, v1alpha1.ReasonSkipped,
		},
		"DIST-D28 under AdoptIdentical an equal object is adopted, and the other copy created": {
			v1alpha1.ConflictAdoptIdentical, "new", []string{"adopt d1", "create d0"}, map[string]string{"d0": "new", "d1": "new"},
			v1alpha1.ReasonDistributed,
		},
		"DIST-D28 under AdoptIdentical an object that differs prevents the copy in the other target": {
			v1alpha1.ConflictAdoptIdentical, "theirs", nil, map[string]string{"d1": "theirs"}, v1alpha1.ReasonConflict,
		},
		"DIST-D31 under Overwrite the object gets RD's data": {
			v1alpha1.ConflictOverwrite, "theirs", []string{"create d0", "overwrite d1"}, map[string]string{"d0": "new", "d1": "new"},
			v1alpha1.ReasonDistributed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "d0", "d1", "kube-system")
			c.stranger("d1", tc.theirs)
			c.distribute("new", conflictPolicy(tc.policy))
			c.settle(time.Minute)
			slices.Sort(c.writes)
			if diff := cmp.Diff(tc.writes, c.writes) + cmp.Diff(tc.data, c.data()); diff != "" || c.ready() != string(tc.ready) {
				t.Errorf("ready: %s, want %s\n%s", c.ready(), tc.ready, diff)
			}
		})
	}
}

func TestAStartTakesBackNothing(t *testing.T) {
	for name, policy := range map[string]v1alpha1.ConflictPolicy{
		"DIST-D112 after a restart under AdoptIdentical, an object that differs stays reported; the status is not " +
			"written": v1alpha1.ConflictAdoptIdentical,
		"DIST-D112 after a restart under Overwrite, an immutable object stays reported; the status is not " +
			"written": v1alpha1.ConflictOverwrite,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "d0")
			c.refuse = refuseOverwrite
			c.stranger("d0", "theirs")
			c.distribute("new", conflictPolicy(policy))
			c.settle(time.Minute)
			before := c.rds["rd"].ResourceVersion
			c.start()
			c.settle(time.Hour)
			if after := c.rds["rd"].ResourceVersion; after != before {
				t.Errorf("the status was written between %s and %s: %+v", before, after, c.status())
			}
		})
	}
}

func TestAStartTakesBackNoFailure(t *testing.T) {
	for name, change := range map[string]func(c *cluster){
		"DIST-D131 after a restart, a copy that the API server refuses stays reported; the status is not written": func(*cluster) {},
		"DIST-D131 after a restart, a failure that is over is reported as over, in one write of the status":       (*cluster).acceptAll,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "d0", "d1")
			c.refuse = func(_ Verb, slot copies.Slot) error {
				if slot.Namespace == "d1" {
					return apierrors.NewForbidden(resource.GroupResource(), slot.Name, errors.New("exceeded quota: objects"))
				}
				return nil
			}
			c.distribute("new")
			c.settle(time.Minute)
			if c.status().Failed != 1 {
				t.Fatalf("%+v", c.status())
			}
			change(c)
			want, statuses := c.status().Failed, c.statuses
			if c.refuse == nil {
				want, statuses = 0, statuses+1
			}
			c.start()
			c.settle(time.Minute)
			if got := c.status().Failed; got != want || c.statuses != statuses {
				t.Errorf("%d copies failed, want %d; the status was written %d times, want %d", got, want, c.statuses, statuses)
			}
		})
	}
}

// immutable is the API server's answer to a change of an immutable object.
var immutable = apierrors.NewInvalid(configMaps.GroupKind(), "settings",
	field.ErrorList{field.Forbidden(field.NewPath("data"), "is immutable")})

// refuseOverwrite refuses every overwriting, because the object is immutable.
func refuseOverwrite(verb Verb, _ copies.Slot) error {
	if verb == Overwrite {
		return immutable
	}
	return nil
}

func TestAnAnswerForAnEarlierSpec(t *testing.T) {
	for name, earlier := range map[string]v1alpha1.ConflictPolicy{
		"DIST-D114 if AdoptIdentical changes to Skip during a comparison, its answer does not count: Unrelated, " +
			"also after a restart": v1alpha1.ConflictAdoptIdentical,
		"DIST-D114 if Overwrite changes to Skip while a write is refused, the answer does not count: Unrelated, " +
			"also after a restart": v1alpha1.ConflictOverwrite,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "d0")
			c.stranger("d0", "theirs")
			c.distribute("new", conflictPolicy(earlier))
			changed := false
			c.refuse = func(verb Verb, _ copies.Slot) error {
				if !changed && (verb == Examine || verb == Overwrite) {
					changed = true
					c.distribute("new", conflictPolicy(v1alpha1.ConflictSkip))
					c.applyTo(c.events[len(c.events)-1]) // the watch shows the new spec before the answer to the write comes
				}
				return refuseOverwrite(verb, copies.Slot{})
			}
			c.settle(time.Minute)
			if !changed {
				t.Fatal("the object was neither compared nor overwritten")
			}
			want := []v1alpha1.ConflictingNamespace{{Name: "d0", Reason: v1alpha1.ReasonUnrelated}}
			if diff := cmp.Diff(want, c.status().ConflictingNamespaces); diff != "" {
				t.Error(diff)
			}
			before := c.rds["rd"].ResourceVersion
			c.start()
			c.settle(time.Minute)
			if after := c.rds["rd"].ResourceVersion; after != before {
				t.Errorf("a restart wrote the status between %s and %s", before, after)
			}
		})
	}
}

// DIST-D88 (2): what is too long is not immutable.
func TestTooLongDataAreRejected(t *testing.T) {
	c := newCluster(t, "d0")
	c.start()
	c.refuse = func(Verb, copies.Slot) error {
		return apierrors.NewInvalid(configMaps.GroupKind(), "settings", field.ErrorList{field.TooLong(field.NewPath("data"), "", 1<<20)})
	}
	c.distribute("new")
	c.settle(time.Hour)
	stalled := v1alpha1.FindCondition(c.status().Conditions, v1alpha1.ConditionStalled)
	if stalled == nil || stalled.Reason != string(v1alpha1.ReasonRejected) {
		t.Errorf("got %+v, want reason Rejected", stalled)
	}
}

func TestAnObstacleBecomesASource(t *testing.T) {
	for name, tc := range map[string]struct {
		policy v1alpha1.ConflictPolicy
		alone  v1alpha1.Reason // the reason while the obstacle's namespace is in no tree
	}{
		"DIST-D115 Skip, kind in mode All: while its namespace is a root, the obstacle is Propagated, else Unrelated; it is unchanged; " +
			"a restart writes no status": {v1alpha1.ConflictSkip, v1alpha1.ReasonUnrelated},
		"DIST-D115 Overwrite, kind in mode All: while its namespace is a root, an immutable obstacle is Propagated, else Immutable; " +
			"a restart writes no status": {v1alpha1.ConflictOverwrite, v1alpha1.ReasonImmutable},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "d0")
			c.covered = true
			c.start()
			c.refuse = refuseOverwrite
			c.stranger("d0", "theirs")
			c.distribute("new", conflictPolicy(tc.policy))
			for _, step := range []struct {
				labels map[string]string
				want   v1alpha1.ConflictingNamespace
			}{
				{nil, v1alpha1.ConflictingNamespace{Name: "d0", Reason: tc.alone}},
				{map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot},
					v1alpha1.ConflictingNamespace{Name: "d0", Reason: v1alpha1.ReasonPropagated, By: "d0"}},
				{nil, v1alpha1.ConflictingNamespace{Name: "d0", Reason: tc.alone}},
			} {
				change := ForestChanged{Old: c.forest, Namespaces: []string{"d0"}}
				c.forest = c.forest.WithNamespace(&forest.Namespace{Name: "d0", UID: "d0", Labels: step.labels})
				change.New = c.forest
				c.applyTo(change)
				c.settle(time.Hour)
				before := c.rds["rd"].ResourceVersion
				if diff := cmp.Diff([]v1alpha1.ConflictingNamespace{step.want}, c.status().ConflictingNamespaces); diff != "" {
					t.Errorf("with labels %v: %s", step.labels, diff)
				}
				c.start()
				c.settle(time.Hour)
				if after := c.rds["rd"].ResourceVersion; after != before || c.data()["d0"] != "theirs" {
					t.Errorf("a restart wrote the status between %s and %s; the data is %v", before, after, c.data())
				}
			}
		})
	}
}

func TestALaterCopyIsReportedAsObstacle(t *testing.T) {
	t.Run("DIST-D113 a copy that another RD creates later than its others is reported as a conflict at once; "+
		"a restart changes no status", func(t *testing.T) {
		c := newCluster(t, "d0", "d1")
		refused := true
		c.refuse = func(_ Verb, slot copies.Slot) error {
			if refused && slot.Namespace == "d1" {
				return apierrors.NewInternalError(errors.New("not now"))
			}
			return nil
		}
		c.distribute("new")
		c.settle(0)
		second := c.rds["rd"].DeepCopy()
		second.Name, second.UID, second.Status = "rd2", "rd2", v1alpha1.ResourceDistributionStatus{}
		c.storeDistribution(second)
		c.settle(0)
		refused = false
		c.settle(time.Hour)
		before := c.rds["rd2"]
		c.start()
		c.settle(time.Hour)
		if diff := cmp.Diff(before.Status, c.rds["rd2"].Status); diff != "" {
			t.Errorf("a start finds what the status did not say: %s", diff)
		}
	})
}

func TestAConflictEndsWithItsObstacle(t *testing.T) {
	c := newCluster(t, "d0", "d1")
	c.stranger("d1", "theirs")
	c.distribute("new")
	c.settle(time.Minute)
	if c.watches != 1 {
		t.Errorf("%d watches of obstacles, want one as long as there is a conflict", c.watches)
	}
	c.remove("d1/settings")
	c.settle(time.Minute)
	if diff := cmp.Diff(map[string]string{"d0": "new", "d1": "new"}, c.data()); diff != "" || c.watches != 0 {
		t.Errorf("%d watches of obstacles, want none: %s", c.watches, diff)
	}
	if want := []string{string(v1alpha1.ReasonConflict), string(v1alpha1.ReasonConflictResolved)}; !slices.Contains(c.reports, want[0]) ||
		!slices.Contains(c.reports, want[1]) {
		t.Errorf("got Events %v, want %v among them", c.reports, want)
	}
}

func TestAnotherPolicyJudgesAnew(t *testing.T) {
	t.Run("DIST-D109 when AdoptIdentical changes to Overwrite, an object that was not identical is overwritten at once", func(t *testing.T) {
		c := newCluster(t, "d0")
		c.stranger("d0", "theirs")
		c.distribute("new", conflictPolicy(v1alpha1.ConflictAdoptIdentical))
		c.settle(time.Minute)
		c.distribute("new", conflictPolicy(v1alpha1.ConflictOverwrite))
		c.settle(time.Minute)
		if diff := cmp.Diff(map[string]string{"d0": "new"}, c.data()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestNothingIsWatchedForWhatIsNotDistributed(t *testing.T) {
	t.Run("DIST-D103 an invalid spec ends the watch of obstacles; when the spec is valid, they are listed again and "+
		"watched", func(t *testing.T) {
		c := newCluster(t, "d0", "d1")
		c.stranger("d1", "theirs")
		c.distribute("new")
		c.settle(time.Minute)
		c.distribute("new", func(s *spec) { s.Resource.Raw = []byte(`{}`) })
		c.settle(time.Minute)
		if c.watches != 0 || c.ready() != string(v1alpha1.ReasonInvalidResource) {
			t.Errorf("%d watches, ready: %s; want that nothing is watched for an invalid spec", c.watches, c.ready())
		}
		c.distribute("new")
		c.settle(time.Minute)
		if c.watches != 1 || c.status().Conflicts != 1 {
			t.Errorf("%d watches and %d conflicts, want one each", c.watches, c.status().Conflicts)
		}
	})
}

func TestNothingIsWatchedForAKindThatIsNotAllowed(t *testing.T) {
	t.Run("DIST-D103 while `distribution.kinds` lacks the kind, no obstacle is watched; when the kind is back, "+
		"they are listed again and watched", func(t *testing.T) {
		c := newCluster(t, "d0", "d1")
		c.stranger("d1", "theirs")
		c.distribute("new")
		c.settle(time.Minute)
		if c.watches != 1 {
			t.Fatalf("%d watches of obstacles, want one before the kind is removed", c.watches)
		}
		c.kinds = nil
		c.start() // another configuration takes effect when the operator starts
		c.settle(time.Minute)
		if c.watches != 0 || len(c.state.ObstacleWatches()) != 0 || c.ready() != string(v1alpha1.ReasonKindNotAllowed) {
			t.Errorf("%d watches, ready: %s; want that nothing is watched for a kind that is not allowed", c.watches, c.ready())
		}
		c.stranger("d0", "theirs") // nothing shows it to the operator
		c.settle(time.Minute)
		c.kinds = []schema.GroupVersionKind{configMaps}
		c.start()
		c.settle(time.Minute)
		if c.watches != 1 || c.status().Conflicts != 2 {
			t.Errorf("%d watches and %d conflicts, want one watch that shows both", c.watches, c.status().Conflicts)
		}
		c.remove("d0/settings")
		c.remove("d1/settings")
		c.settle(time.Minute)
		if diff := cmp.Diff(map[string]string{"d0": "new", "d1": "new"}, c.data()); diff != "" || c.watches != 0 {
			t.Errorf("%d watches of obstacles, want none: %s", c.watches, diff)
		}
	})
}

func TestADistributionThatGoesWhileItTakesAnObjectUp(t *testing.T) {
	t.Run("DIST-D110 if RD is deleted while an object is adopted, the object is handed back", func(t *testing.T) {
		c := newCluster(t, "d0")
		c.stranger("d0", "new")
		c.distribute("new", conflictPolicy(v1alpha1.ConflictAdoptIdentical))
		c.refuse = func(verb Verb, _ copies.Slot) error {
			if verb == Adopt {
				c.deleteDistribution()
				for len(c.events) > 0 { // the State knows that rd was deleted before the answer to the write comes
					event := c.events[0]
					c.events = c.events[1:]
					c.applyTo(event)
				}
				c.work(Key{Distribution: "rd"})
				c.queue = nil
			}
			return nil
		}
		c.settle(time.Minute)
		if diff := cmp.Diff([]string{"adopt d0", "hand back d0"}, c.writes); diff != "" {
			t.Errorf("nothing else will look at the object: %s", diff)
		}
	})
}

func TestWhatCannotBeTakenUpIsLookedAtAgain(t *testing.T) {
	for name, err := range map[string]error{
		"DIST-D91 Overwrite is refused for an immutable obstacle; if the obstacle is deleted before the next try, the copy is created": immutable,
		"DIST-D91 Overwrite is refused with 403; if the obstacle is deleted before the next try, the copy is " +
			"created": apierrors.NewForbidden(corev1.Resource("configmaps"), "settings", nil),
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "d0")
			c.stranger("d0", "theirs")
			c.refuse = func(verb Verb, _ copies.Slot) error {
				if verb == Overwrite {
					return err
				}
				return nil
			}
			c.distribute("new", conflictPolicy(v1alpha1.ConflictOverwrite))
			c.settle(100 * time.Millisecond)
			c.remove("d0/settings") // the object is removed while its target waits
			c.settle(time.Hour)
			if diff := cmp.Diff(map[string]string{"d0": "new"}, c.data()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
