package distribute

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// takeLate removes the object that is in the way in d2, and then takes in what has found it. It expects that d2 gets its copy.
func (c *cluster) takeLate(t *testing.T, late Input) {
	t.Helper()
	c.remove("d2/settings")
	c.showAll()
	c.applyTo(late)
	c.settle(time.Minute)
	if diff := cmp.Diff(map[string]string{"d0": "new", "d1": "theirs", "d2": "new"}, c.data()); diff != "" {
		t.Error(diff)
	}
}

// startWrite has a worker take the copy in a namespace, and expects a write.
func (c *cluster) startWrite(t *testing.T, namespace string) WriteCopy {
	t.Helper()
	key := Key{"rd", namespace}
	c.queue = slices.DeleteFunc(c.queue, func(one Key) bool { return one == key })
	write, is := c.applyTo(Started{key}).(WriteCopy)
	if !is {
		t.Fatal("nothing is written in " + namespace)
	}
	return write
}

func TestALateAnswerMakesNoConflict(t *testing.T) {
	t.Run("DIST-D123 an object that was in the way, and that a watch has shown to be gone before the answer came, is no "+
		"conflict", func(t *testing.T) {
		c := newCluster(t, "d0", "d1", "d2")
		c.stranger("d1", "theirs") // so that the watch of obstacles runs
		c.distribute("new", conflictPolicy(v1alpha1.ConflictSkip))
		c.settle(time.Minute)
		c.remove("d2/settings")
		c.showAll()
		write := c.startWrite(t, "d2")
		c.stranger("d2", "theirs")
		answer := c.writeCopy(write)
		c.takeLate(t, answer)
	})
}

func TestAListThatCameLateMakesNoConflict(t *testing.T) {
	t.Run("DIST-D124 a list of objects in the way that is answered after the watch has shown one of them to be gone changes nothing",
		func(t *testing.T) {
			c := newCluster(t, "d0", "d1", "d2")
			c.stranger("d1", "theirs")
			c.stranger("d2", "theirs")
			c.distribute("new", conflictPolicy(v1alpha1.ConflictSkip))
			c.settle(time.Minute)
			r := c.state.runs.at("rd")
			look := ListObstacles{ObstacleWatch: *r.obstacles.watch, of: r.Distribution}
			late := ObstaclesFound{ListObstacles: look,
				Objects: c.list(func(meta *metav1.PartialObjectMetadata) bool { return meta.Labels[v1alpha1.LabelDistributedBy] == "" })}
			c.takeLate(t, late)
		})
}

func TestAConflictIsFoundAfterAnotherSpec(t *testing.T) {
	t.Run("DIST-D126 when a namespace with an object in the way becomes a target again, the conflict is reported, after one try to create "+
		"the copy", func(t *testing.T) {
		c := newCluster(t, "d0", "d1")
		everywhere := conflictPolicy(v1alpha1.ConflictSkip)
		c.stranger("d1", "theirs")
		c.distribute("new", everywhere)
		c.settle(time.Minute)
		c.distribute("new", everywhere, func(spec *v1alpha1.ResourceDistributionSpec) {
			spec.Targets = v1alpha1.DistributionTargets{IncludedNamespaces: named("d0")}
		})
		c.settle(time.Minute)
		c.writes = nil
		c.distribute("new", everywhere)
		c.settle(time.Minute)
		if diff := cmp.Diff([]string{"create d1"}, c.writes); diff != "" || c.status().Conflicts != 1 {
			t.Errorf("%d conflicts, want 1; writes: %s", c.status().Conflicts, diff)
		}
	})
}

// A create finds the distribution's own copy, of which the table knows nothing yet; before its answer is applied,
// the watch shows that copy, and its end.
func TestALateAnswerMakesNoCopy(t *testing.T) {
	t.Run("DIST-D127 a copy that a create has found, and that a watch has shown to be gone before the answer came, is made again",
		func(t *testing.T) {
			c := newCluster(t, "d0", "d1", "d2")
			c.distribute("new", conflictPolicy(v1alpha1.ConflictSkip))
			c.settle(time.Minute)
			c.remove("d2/settings")
			c.showAll()
			lost := c.startWrite(t, "d2")
			c.writeCopy(lost) // the copy is made
			c.applyTo(CopyWritten{WriteCopy: lost, Err: errors.New("connection reset")})
			events := c.events
			c.events, c.now = nil, c.now.Add(time.Minute)
			answer := c.writeCopy(c.startWrite(t, "d2"))
			if answer.Answer.Found == nil {
				t.Fatalf("%+v", answer)
			}
			c.events = events
			c.remove("d2/settings")
			c.showAll()
			c.applyTo(answer)
			c.settle(10 * time.Minute)
			if c.data()["d2"] != "new" {
				t.Errorf("d2 has no copy: %v; %s", c.data(), c.ready())
			}
		})
}
