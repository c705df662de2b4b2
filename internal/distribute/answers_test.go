package distribute

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

func TestARefusalIsAboutTheObjectThatWasThere(t *testing.T) {
	t.Run("DIST-D128 a refusal to overwrite an object says nothing about another one that has its "+
		"name when the answer comes", func(t *testing.T) {
		c := newCluster(t, "d0")
		c.stranger("d0", "theirs")
		c.refuse = func(verb Verb, _ copies.Slot) error {
			if verb != Overwrite {
				return nil
			}
			c.refuse = nil
			c.remove("d0/settings") // before the answer comes, the watch shows another object
			c.stranger("d0", "other")
			c.showAll()
			return immutable
		}
		c.distribute("new", conflictPolicy(v1alpha1.ConflictOverwrite))
		c.settle(time.Hour)
		if diff := cmp.Diff(map[string]string{"d0": "new"}, c.data()); diff != "" {
			t.Errorf("the object that came later is not overwritten: %s %v", diff, c.status().ConflictingNamespaces)
		}
	})
}

// startOverwrite returns a cluster in which objects of others are in the way in d0 and d1, and the write that is to overwrite
// that in d0. The API server is too busy to have the one in d1 overwritten.
func startOverwrite(t *testing.T) (*cluster, WriteCopy) {
	c := newCluster(t, "d0", "d1")
	busy := map[string]bool{"d0": true, "d1": true}
	c.refuse = func(verb Verb, slot copies.Slot) error {
		if verb == Overwrite && busy[slot.Namespace] {
			return apierrors.NewInternalError(errors.New("not now"))
		}
		return nil
	}
	c.stranger("d0", "theirs")
	c.stranger("d1", "theirs")
	c.distribute("new", conflictPolicy(v1alpha1.ConflictOverwrite))
	c.settle(0)
	c.now, busy["d0"] = c.now.Add(time.Hour), false
	return c, c.startWrite(t, "d0")
}

func TestAnAnswerThatAnObjectIsGoneIsAboutThatObject(t *testing.T) {
	t.Run("DIST-D128 an answer that an object is gone hides no other object that a watch has shown since", func(t *testing.T) {
		c, write := startOverwrite(t)
		c.remove("d0/settings")
		answer := c.writeCopy(write)
		c.stranger("d0", "other")
		c.stranger("d1", "other")
		c.showAll()
		c.applyTo(answer)
		c.settle(time.Minute)
		if diff := cmp.Diff(map[string]string{"d0": "new", "d1": "other"}, c.data()); diff != "" {
			t.Errorf("%s; writes: %v", diff, c.writes)
		}
	})
}

func TestAnAnswerAboutACopyHidesNoLaterObject(t *testing.T) {
	t.Run("DIST-D128 the answer to a write of a copy hides no other object that a watch has shown since", func(t *testing.T) {
		c, write := startOverwrite(t)
		answer := c.writeCopy(write)
		c.stranger("d0", "other") // somebody takes the operator's label off
		c.stranger("d1", "other")
		var ofCopies []Input // the watch of copies is behind that of obstacles
		for _, event := range c.events {
			switch event.(type) {
			case CopySeen, CopyGone:
				ofCopies = append(ofCopies, event)
			default:
				c.applyTo(event)
			}
		}
		c.events = ofCopies
		c.applyTo(answer)
		c.settle(time.Minute)
		if diff := cmp.Diff(map[string]string{"d0": "new", "d1": "other"}, c.data()); diff != "" {
			t.Errorf("%s; writes: %v", diff, c.writes)
		}
	})
}

func TestAnAnswerIsAboutTheCopyThatWasThere(t *testing.T) {
	t.Run("DIST-D129 a copy that takes the place of another one before the answer to a write of that one is updated", func(t *testing.T) {
		c := newCluster(t, "d0")
		c.distribute("old")
		c.settle(time.Minute)
		old := maps.Clone(c.objects["d0/settings"])
		c.distribute("new")
		c.refuse = func(verb Verb, _ copies.Slot) error {
			if verb == Update {
				return apierrors.NewInternalError(errors.New("not now"))
			}
			return nil
		}
		c.settle(0)
		c.refuse, c.now = nil, c.now.Add(time.Hour)
		answer := c.writeCopy(c.startWrite(t, "d0"))
		c.remove("d0/settings")
		c.write("d0", old, v1alpha1.OperatorName) // from a backup, for example
		c.showAll()
		c.applyTo(answer)
		c.settle(time.Minute)
		if diff := cmp.Diff(map[string]string{"d0": "new"}, c.data()); diff != "" {
			t.Error(diff)
		}
	})
}

// A watch that is behind shows a status that the operator has replaced since.
func TestAnOlderStatusThanTheOperatorsOwnChangesNothing(t *testing.T) {
	t.Run("DIST-D130 an event that shows an older status than the operator has written since changes nothing", func(t *testing.T) {
		c := newCluster(t, "d0", "d1")
		c.distribute("new")
		c.settle(time.Minute)
		older := c.rds["rd"].DeepCopy()
		c.stranger("d0", "theirs") // it is no copy any more: the status changes
		c.settle(time.Minute)
		now := c.rds["rd"]
		if older.ResourceVersion == now.ResourceVersion {
			t.Fatal("the status has not changed")
		}
		c.applyTo(DistributionSeen{older})
		if got := c.state.runs.at("rd").report.resourceVersion; got != now.ResourceVersion {
			t.Errorf("the status counts as that of version %s, not of %s: the next write of it is refused", got, now.ResourceVersion)
		}
	})
}
