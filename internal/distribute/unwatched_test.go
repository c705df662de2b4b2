package distribute

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

func TestAConflictEndsWithoutAWatchOfObstacles(t *testing.T) {
	forbidden := &watchset.ForbiddenError{Resource: resource, Missing: []string{"watch"}}
	for name, unwatched := range map[string]watchset.Status{
		"DIST-D121 if obstacles are not watched for want of room, the message says so; they are listed every `retry.max`, and copies created, " +
			"without other writes of the status": {State: watchset.Pending, Err: watchset.ErrLimit},
		"DIST-D121 if the operator may not watch obstacles, the message says so; they are listed every `retry.max`, and copies created, " +
			"without other writes of the status": {State: watchset.Forbidden, Err: forbidden, Missing: forbidden.Missing},
		"DIST-D121 if the API server opens no watch of obstacles, the message says so; they are listed every `retry.max`, and copies created, " +
			"without other writes of the status": {State: watchset.Degraded, Err: errors.New("no answer")},
		"DIST-D121 while the watch of obstacles has not listed yet, they are listed every `retry.max`, and copies created; " +
			"the message does not mention it": {State: watchset.Syncing},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "d0", "d1")
			c.unwatched = unwatched
			c.stranger("d1", "theirs")
			c.distribute("new")
			c.settle(5 * time.Second)
			message := v1alpha1.FindCondition(c.status().Conditions, v1alpha1.ConditionConflictFree).Message
			if strings.Contains(message, "every 1m0s instead of watching") != (unwatched.Err != nil) {
				t.Errorf("the message does not say whether the objects are watched: %s", message)
			}
			before := c.rds["rd"].ResourceVersion
			c.settle(time.Hour)
			if after := c.rds["rd"].ResourceVersion; after != before {
				t.Errorf("the status was written between %s and %s, though nothing has changed", before, after)
			}
			c.remove("d1/settings")
			c.settle(2 * time.Minute)
			if diff := cmp.Diff(map[string]string{"d0": "new", "d1": "new"}, c.data()); diff != "" || c.watches != 0 {
				t.Errorf("%d watches of obstacles, want none: %s", c.watches, diff)
			}
		})
	}
}

func TestAFailingListOfObstaclesStopsNothing(t *testing.T) {
	t.Run("DIST-D121 under Skip, while neither watch nor list of obstacles works, other targets get new data", func(t *testing.T) {
		c := newCluster(t, "d0", "d1")
		c.unwatched = watchset.Status{State: watchset.Degraded, Err: errors.New("no answer")}
		c.stranger("d1", "theirs")
		c.distribute("new", conflictPolicy(v1alpha1.ConflictSkip))
		c.settle(5 * time.Second)
		c.listFails = errors.New("no answer")
		c.settle(10 * time.Minute)
		c.distribute("newer", conflictPolicy(v1alpha1.ConflictSkip))
		c.settle(10 * time.Second)
		if diff := cmp.Diff(map[string]string{"d0": "newer", "d1": "theirs"}, c.data()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAWatchOfObstaclesIsReportedAgain(t *testing.T) {
	t.Run("DIST-D121 when the watch of obstacles runs again, the message does not mention it any more, and a deleted obstacle is "+
		"noticed", func(t *testing.T) {
		c := newCluster(t, "d0", "d1")
		c.unwatched = watchset.Status{State: watchset.Pending, Err: watchset.ErrLimit}
		c.stranger("d1", "theirs")
		c.distribute("new")
		c.settle(time.Minute)
		c.unwatched = watchset.Status{}
		c.follow()
		c.settle(time.Minute)
		if ready := v1alpha1.FindCondition(c.status().Conditions, v1alpha1.ConditionReady); strings.Contains(ready.Message, "watch") {
			t.Errorf("the message still says that the objects are not watched: %s", ready.Message)
		}
		c.remove("d1/settings")
		c.settle(5 * time.Second)
		if diff := cmp.Diff(map[string]string{"d0": "new", "d1": "new"}, c.data()); diff != "" {
			t.Error(diff)
		}
	})
}
