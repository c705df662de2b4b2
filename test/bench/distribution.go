package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

// measureDistribution measures B9: how long one ResourceDistribution takes to create, update and delete copies in many plain namespaces.
// It compares these times with those of a writer that knows everything beforehand. For the deletions, it changes the targets so that they
// select no namespace. It also counts the operator's requests, and its writes and lists after a restart.
func measureDistribution(ctx context.Context, b *bench) ([]result, error) {
	err := inParallel(ctx, b.scale.children, func(ctx context.Context, i int) error {
		return b.Admin().Create(ctx, build.Namespace(childName(i), "bench", "yes"))
	})
	if err != nil {
		return nil, err
	}
	if err := b.startOperator(ctx); err != nil {
		return nil, err
	}
	b.label = v1alpha1.LabelDistributedBy
	o, err := b.observeIdle(ctx)
	if err != nil {
		return nil, err
	}
	defer o.stop()
	f := &distributing{bench: b, observer: o, asked: map[string]int{}}
	var all [2][]times
	for round := range b.scale.rounds {
		took, err := f.round(ctx, round)
		if err != nil {
			return nil, fmt.Errorf("round %d: %w", round, err)
		}
		for side, t := range took {
			all[side] = append(all[side], t)
		}
	}
	var results []result
	for phase, name := range phases {
		results = append(results, judgeQuotient("B9", "distribution "+name, all[floor], all[operator], phase))
	}
	requests := f.result()
	restarted, err := f.restart(ctx)
	return append(results, requests, restarted), err
}

// distributing runs rounds of B9.
type distributing struct {
	bench    *bench
	observer *observer
	asked    map[string]int // how many requests for Secrets the operator has sent in all its turns, by verb
	turns    int
	// conflicts is the conflictPolicy; "" is the default.
	conflicts v1alpha1.ConflictPolicy
}

func (f *distributing) round(ctx context.Context, round int) (took [2]times, err error) {
	order := turnOrder(round)
	for phase, name := range phases {
		for i, side := range order {
			t, err := f.turn(ctx, side, fmt.Sprintf("rd-%d-%d", round, i), phase)
			if err != nil {
				return took, fmt.Errorf("%s, turn %d: %w", name, i, err)
			}
			took[side][phase] += t / 2
		}
	}
	return took, nil
}

// turn times one phase of one side. The operator has nothing to do while the floor writes: there is no ResourceDistribution with that name.
func (f *distributing) turn(ctx context.Context, who side, name string, phase int) (time.Duration, error) {
	bodies, err := f.bodies(who, name, phase)
	if err != nil {
		return 0, err
	}
	mark, err := f.bench.Mark(ctx)
	if err != nil {
		return 0, err
	}
	f.observer.expect(goals[phase], f.bench.scale.children)
	begin := time.Now()
	if who == floor {
		err = f.write(ctx, name, phase, bodies)
	} else {
		err = f.ask(ctx, name, phase)
	}
	if err != nil {
		return 0, err
	}
	end, err := f.observer.wait(ctx)
	if err != nil || who == floor {
		return end.Sub(begin), err
	}
	if err := f.bench.waitForIdle(ctx); err != nil {
		return 0, err
	}
	requests, err := f.bench.Requests(ctx, mark)
	f.turns++
	for _, r := range requests {
		if r.User == operatorUser && r.Resource == "secrets" && !strings.Contains(r.URI, "resourceVersion=") {
			f.asked[r.Verb]++
		}
	}
	return end.Sub(begin), err
}

// ask lets the operator do a phase of a distribution.
func (f *distributing) ask(ctx context.Context, name string, phase int) error {
	rd := &v1alpha1.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: name}}
	selecting := func(value string) v1alpha1.DistributionTargets {
		return v1alpha1.DistributionTargets{NamespaceLabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"bench": value}}}
	}
	fill := "a"
	if phase != creates {
		if err := f.bench.Admin().Get(ctx, client.ObjectKeyFromObject(rd), rd); err != nil {
			return err
		}
		fill = "b"
	}
	s := newSecret(name, fill)
	resource, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name},
		"type": s.Type, "data": s.Data})
	if err != nil {
		return err
	}
	rd.Spec.Resource, rd.Spec.Targets = runtime.RawExtension{Raw: resource}, selecting("yes")
	rd.Spec.ConflictPolicy = f.conflicts
	switch phase {
	case creates:
		return f.bench.Admin().Create(ctx, rd)
	case deletes:
		rd.Spec.Targets = selecting("no")
	}
	return f.bench.Admin().Update(ctx, rd)
}

// bodies returns the bodies of the floor's requests.
func (f *distributing) bodies(who side, name string, phase int) ([][]byte, error) {
	if who != floor {
		return nil, nil
	}
	known, yes := f.observer.all(), true
	bodies := make([][]byte, f.bench.scale.children)
	for i := range bodies {
		over := known[childName(i)+"/"+name]
		var err error
		if phase == deletes {
			bodies[i], err = floorDelete(over)
		} else {
			s := newSecret(name, "ab"[phase:phase+1])
			s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
			s.Namespace, s.UID, s.ResourceVersion = childName(i), types.UID(over.uid), over.resourceVersion
			s.Labels = map[string]string{v1alpha1.LabelDistributedBy: name}
			s.Annotations = map[string]string{v1alpha1.AnnotationSourceHash: "update:0123456789abcdef:" + strings.Repeat("ab"[phase:phase+1], 32)}
			// The reference has no blockOwnerDeletion, and its owner is an object that exists, of a cluster-scoped kind: the garbage collector keeps
			// the copy.
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: childName(i),
				UID: f.bench.namespaceUID(childName(i)), Controller: &yes}}
			bodies[i], err = json.Marshal(s)
		}
		if err != nil {
			return nil, err
		}
	}
	return bodies, nil
}

// namespaceUID returns the UID of a namespace, "" if it can't be read.
func (b *bench) namespaceUID(name string) types.UID {
	n := &corev1.Namespace{}
	_ = b.Admin().Get(context.Background(), client.ObjectKey{Name: name}, n)
	return n.UID
}

// write sends the floor's requests as the operator would, with 16 workers.
func (f *distributing) write(ctx context.Context, name string, phase int, bodies [][]byte) error {
	c, err := f.bench.floorClient(operatorUser)
	if err != nil {
		return err
	}
	return inParallel(ctx, len(bodies), func(ctx context.Context, i int) error {
		r := c.Delete().Name(name)
		switch phase {
		case creates:
			r = c.Post().Param("fieldManager", v1alpha1.OperatorName)
		case updates:
			r = c.Put().Name(name).Param("fieldManager", v1alpha1.OperatorName)
		}
		_, err := r.Namespace(childName(i)).Resource("secrets").Body(bodies[i]).
			SetHeader("Content-Type", "application/json").SetHeader("Accept", accept).Do(ctx).Raw()
		return err
	})
}

// result judges the operator's requests: one write for each change of a copy, at most one list for each distribution, and no read.
func (f *distributing) result() result {
	distributions := f.turns / len(phases)
	n := distributions * f.bench.scale.children
	r := result{id: "B9", counted: true,
		text: fmt.Sprintf("requests for %d copies of %d distributions: create %d update %d delete %d, lists %d, reads %d",
			n, distributions, f.asked["create"], f.asked["update"], f.asked["delete"], f.asked["list"], f.asked["get"])}
	r.passed = f.asked["create"] == n && f.asked["update"] == n && f.asked["delete"] == n && f.asked["list"] <= distributions &&
		f.asked["get"] == 0
	return r
}

// waitForReports waits until the status of every distribution reports that all is done. Otherwise a restart would write the rest of the
// status.
func (b *bench) waitForReports(ctx context.Context) error {
	return waitFor(ctx, "the status of every distribution", func(ctx context.Context) (bool, error) {
		list := &v1alpha1.ResourceDistributionList{}
		if err := b.Admin().List(ctx, list); err != nil {
			return false, err
		}
		for i := range list.Items {
			rd := &list.Items[i]
			ready := v1alpha1.FindCondition(rd.Status.Conditions, v1alpha1.ConditionReady)
			if rd.Status.ObservedGeneration != rd.Generation || ready == nil || ready.Status != metav1.ConditionTrue {
				return false, nil
			}
		}
		return true, nil
	})
}

// restart restarts the operator while one distribution has all its copies. The result passes if the operator then writes nothing, and
// lists copies at most once.
func (f *distributing) restart(ctx context.Context) (result, error) {
	f.observer.expect(goals[creates], f.bench.scale.children)
	if err := f.ask(ctx, "rd-rest", creates); err != nil {
		return result{}, err
	}
	if _, err := f.observer.wait(ctx); err != nil {
		return result{}, err
	}
	if err := f.bench.waitForReports(ctx); err != nil {
		return result{}, err
	}
	if err := f.bench.waitForIdle(ctx); err != nil {
		return result{}, err
	}
	mark, err := f.bench.Mark(ctx)
	if err != nil {
		return result{}, err
	}
	if err := f.bench.Operator.Restart(ctx); err != nil {
		return result{}, err
	}
	if err := f.bench.waitForIdle(ctx); err != nil {
		return result{}, err
	}
	writes, err := f.bench.Writes(ctx, mark)
	if err != nil {
		return result{}, err
	}
	requests, err := f.bench.Requests(ctx, mark)
	lists := 0
	for _, r := range requests {
		if r.User == operatorUser && r.Resource == "secrets" && r.Verb == "list" && strings.Contains(r.URI, "distributed-by") {
			lists++
		}
	}
	return result{id: "B9", counted: true, text: fmt.Sprintf("after a restart: writes %d %v, lists of copies %d, limit 1",
		len(writes), writes, lists),
		passed: len(writes) == 0 && lists <= 1}, err
}
