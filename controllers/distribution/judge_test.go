package distribution

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/forest"
)

// progressOf is that of distribution rd of Secret s to all namespaces, which nobody has reviewed yet.
func progressOf(change func(*v1alpha1.ResourceDistributionSpec)) *progress {
	rd := distributionOf("2", 1)
	change(&rd.Spec)
	p := newProgress(distribute.Read(rd, distribute.Settings{Kinds: []schema.GroupVersionKind{secrets}}), rd.Status)
	return &p
}

// sceneOf has namespaces d0 to d(n-1). In the first ones stands a copy of ours with other content than the template's.
func sceneOf(n, outdated int) *scene {
	s := &scene{
		forest: forest.New(forest.Rules{}), protected: func(string) bool { return false },
		copies: map[string]*distribute.Copy{}, troubles: map[string]trouble{}, now: time.Unix(1000, 0),
	}
	for i := range n {
		name := fmt.Sprintf("d%d", i)
		s.forest = s.forest.WithNamespace(&forest.Namespace{Name: name, UID: name})
		if i < outdated {
			s.copies[name] = &distribute.Copy{UID: name, ResourceVersion: "1", By: "rd", Ours: true, Owner: "2", Content: "old"}
		}
	}
	return s
}

// verbs is what is to be done, by namespace.
func verbs(results []distribute.Result) map[string]distribute.Verb {
	all := map[string]distribute.Verb{}
	for _, one := range results {
		if one.Verb != distribute.Nothing {
			all[one.Namespace] = one.Verb
		}
	}
	return all
}

func TestJudgeAdmitsAllOrNothing(t *testing.T) {
	p, s := progressOf(func(*v1alpha1.ResourceDistributionSpec) {}), sceneOf(2, 0)
	p.obstacles["d1"] = &distribute.Obstacle{UID: "o", Reason: v1alpha1.ReasonUnrelated}
	j := p.judge(s, p.planAll(s))
	if got := verbs(j.found.Results); len(got) != 0 || j.urgent || j.watch == nil {
		t.Errorf("got %v, urgent %t: want no copy while one namespace is in conflict, and a watch of it", got, j.urgent)
	}
	if again := p.judge(s, p.planAll(s)); again.watch != nil {
		t.Error("a second watch begins for the same conflict")
	}
	delete(p.obstacles, "d1")
	watch := p.watch
	j = p.judge(s, p.planAll(s))
	want := map[string]distribute.Verb{"d0": distribute.Create, "d1": distribute.Create}
	if diff := cmp.Diff(want, verbs(j.found.Results)); diff != "" || !j.urgent {
		t.Errorf("urgent %t, want both copies, and a status before the first of them: %s", j.urgent, diff)
	}
	if p.watch != nil || watch.ctx.Err() == nil {
		t.Error("the watch goes on although nothing stands in the way")
	}
}

func TestJudgeUpdatesInBatches(t *testing.T) {
	one := intstr.FromInt32(1)
	p := progressOf(func(spec *v1alpha1.ResourceDistributionSpec) {
		spec.Rollout = v1alpha1.DistributionRollout{BatchSize: &one, Interval: &metav1.Duration{Duration: time.Minute}, Partition: &one}
	})
	s := sceneOf(3, 3)
	j := p.judge(s, p.planAll(s))
	if diff := cmp.Diff(map[string]distribute.Verb{"d0": distribute.Update}, verbs(j.found.Results)); diff != "" || j.found.Held != 1 || !j.urgent {
		t.Errorf("%d held, urgent %t; want the first, one held back, and a status before it is written: %s", j.found.Held, j.urgent, diff)
	}
	p.unreported = false
	if j = p.judge(s, p.planAll(s)); len(verbs(j.found.Results)) != 1 || j.wait != 0 || j.urgent {
		t.Errorf("got %v, wait %s: want the same batch while it is under way", verbs(j.found.Results), j.wait)
	}
	s.copies["d0"].Content = p.Template.Content
	if j = p.judge(s, p.planAll(s)); len(verbs(j.found.Results)) != 0 || j.wait != time.Minute+time.Second {
		t.Errorf("got %v, wait %s; want a pause from the end of the batch, in whole seconds", verbs(j.found.Results), j.wait)
	}
	s.now = s.now.Add(j.wait)
	j = p.judge(s, p.planAll(s))
	if diff := cmp.Diff(map[string]distribute.Verb{"d1": distribute.Update}, verbs(j.found.Results)); diff != "" || j.wait != 0 {
		t.Errorf("wait %s; want the next: %s", j.wait, diff)
	}
}

func TestAClockThatWasAhead(t *testing.T) {
	t.Run("DIST-D100 the pause is never longer than the interval", func(t *testing.T) {
		one := intstr.FromInt32(1)
		p := progressOf(func(spec *v1alpha1.ResourceDistributionSpec) {
			spec.Rollout = v1alpha1.DistributionRollout{BatchSize: &one, Interval: &metav1.Duration{Duration: time.Minute}}
		})
		s := sceneOf(2, 2)
		p.next = s.now.Add(365 * 24 * time.Hour) // as a status says that was written with another clock
		if j := p.judge(s, p.planAll(s)); j.wait != time.Minute+time.Second {
			t.Errorf("waits %s, want the interval", j.wait)
		}
	})
}

func TestNothingIsWatchedForWhatIsNotDistributed(t *testing.T) {
	t.Run("DIST-D103 the watch of obstacles ends with an invalid spec, and they are listed anew after it", func(t *testing.T) {
		p, s := progressOf(func(*v1alpha1.ResourceDistributionSpec) {}), sceneOf(2, 0)
		p.obstacles["d1"], p.looked = &distribute.Obstacle{UID: "o", Reason: v1alpha1.ReasonUnrelated}, true
		p.judge(s, p.planAll(s))
		watch := p.watch
		p.takeSpec(distribute.Read(distributionOf("2", 1), distribute.Settings{}), p.reported) // its kind is not allowed any more
		if p.Problem != v1alpha1.ReasonKindNotAllowed || watch.ctx.Err() == nil || p.watch != nil {
			t.Errorf("problem %q, watch %v: want the watch ended", p.Problem, p.watch)
		}
		p.takeSpec(distribute.Read(distributionOf("2", 1), distribute.Settings{Kinds: []schema.GroupVersionKind{secrets}}), p.reported)
		if !p.mustLook(p.planAll(s)) {
			t.Error("nobody looks for obstacles although none is known any more")
		}
	})
}

func TestABatchThatFailsEnds(t *testing.T) {
	one := intstr.FromInt32(1)
	p := progressOf(func(spec *v1alpha1.ResourceDistributionSpec) {
		spec.Rollout = v1alpha1.DistributionRollout{BatchSize: &one, Interval: &metav1.Duration{Duration: time.Minute}}
	})
	s := sceneOf(2, 2)
	p.judge(s, p.planAll(s))
	s.troubles["d0"] = trouble{failure: &distribute.Failure{Reason: v1alpha1.ReasonRejected}, tries: 1}
	j := p.judge(s, p.planAll(s))
	if j.wait == 0 {
		t.Error("nothing of the batch is under way any more, and no pause begins")
	}
}

func TestLooksForObstacles(t *testing.T) {
	p, s := progressOf(func(*v1alpha1.ResourceDistributionSpec) {}), sceneOf(1, 0)
	if !p.mustLook(p.planAll(s)) {
		t.Error("the first copy is made without a look")
	}
	p.looked = true
	p.judge(s, p.planAll(s))
	if p.mustLook(p.planAll(s)) {
		t.Error("somebody looks again although the check has passed")
	}
	p.admitted = ""
	if !p.mustLook(p.planAll(s)) {
		t.Error("nobody looks although the check is to be made anew")
	}
	p.watch = &obstacleWatch{synced: true}
	if p.mustLook(p.planAll(s)) {
		t.Error("somebody looks although a watch shows all obstacles")
	}
}
