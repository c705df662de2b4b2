package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// childBudget is the largest quotient that is allowed: the time for SubNamespaces, divided by the time of the floor, a bare writer whose
// requests no webhook judges. childWrites is the largest number of the operator's writes for each SubNamespace: the Namespace and the
// status.
const (
	childBudget = 1.5
	childWrites = 2.0
)

// measureChildren measures B10: the time until new SubNamespaces are all Ready. The floor, a bare writer, takes turns with the operator
// and sends the requests that each SubNamespace needs. The time for as many plain Namespaces is measured, too.
func measureChildren(ctx context.Context, b *bench) ([]result, error) {
	f, err := b.newFamily(ctx)
	if err != nil {
		return nil, err
	}
	for round := range b.scale.rounds {
		if err := f.runRound(ctx, round); err != nil {
			return nil, fmt.Errorf("round %d: %w", round, err)
		}
	}
	return f.judge(), nil
}

// family is what measureChildren has measured, round by round.
type family struct {
	*bench
	pattern                       childPattern
	namespaces, floors, operators []time.Duration
	writes                        map[string]int
}

func (b *bench) newFamily(ctx context.Context) (*family, error) {
	if err := b.startOperator(ctx); err != nil {
		return nil, err
	}
	if err := b.Admin().Create(ctx, build.Root(root)); err != nil {
		return nil, err
	}
	pattern, err := b.makePattern(ctx)
	return &family{bench: b, pattern: pattern, writes: map[string]int{}}, err
}

// runRound gives one turn each to plain Namespaces, the floor and the operator; in every other round the operator comes before the floor.
func (f *family) runRound(ctx context.Context, round int) error {
	took, err := f.makeNamespaces(ctx, round)
	if err != nil {
		return err
	}
	f.namespaces = append(f.namespaces, took)
	turns := []func(context.Context, int) error{f.runFloor, f.runOperator}
	if round%2 == 1 {
		slices.Reverse(turns)
	}
	for _, turn := range turns {
		if err := turn(ctx, round); err != nil {
			return err
		}
	}
	return nil
}

// runFloor times the floor. The operator is stopped meanwhile, because it would otherwise do a part of the work.
func (f *family) runFloor(ctx context.Context, round int) error {
	if err := f.waitForIdle(ctx); err != nil {
		return err
	}
	if _, err := f.Operator.Stop(); err != nil {
		return err
	}
	took, err := f.writeChildren(ctx, f.pattern, round)
	if err != nil {
		return err
	}
	f.floors = append(f.floors, took)
	return f.startOperator(ctx)
}

func (f *family) runOperator(ctx context.Context, round int) error {
	if err := f.waitForIdle(ctx); err != nil {
		return err
	}
	mark, err := f.Mark(ctx)
	if err != nil {
		return err
	}
	took, err := f.makeSubNamespaces(ctx, round)
	if err != nil {
		return err
	}
	f.operators = append(f.operators, took)
	if err := f.waitForIdle(ctx); err != nil {
		return err
	}
	return f.countWrites(ctx, mark, f.writes)
}

func (f *family) judge() []result {
	var quotients, ofNamespaces []float64
	for i, took := range f.operators {
		quotients = append(quotients, float64(took)/float64(f.floors[i]))
		ofNamespaces = append(ofNamespaces, float64(took)/float64(f.namespaces[i]))
	}
	ratio, made := medianOf(quotients), float64(f.scale.rounds*f.scale.children)
	each := float64(f.writes["namespaces"]+f.writes["subnamespaces"]+f.writes["subnamespaces/status"]+f.writes["events"]) / made
	return []result{
		{id: "B10", passed: ratio <= childBudget, text: fmt.Sprintf("children %d floor %.2fs operator %.2fs ratio %.2f (min %.2f max %.2f) "+
			"budget %.2f; %.2f times as many Namespaces, %.2fs",
			f.scale.children, medianOf(f.floors).Seconds(), medianOf(f.operators).Seconds(), ratio, slices.Min(quotients),
			slices.Max(quotients), childBudget,
			medianOf(ofNamespaces), medianOf(f.namespaces).Seconds())},
		{id: "B10", counted: true, passed: each <= childWrites, text: fmt.Sprintf("writes per child %.2f budget %.2f %v", each,
			childWrites, f.writes)},
	}
}

// childPattern has the bodies of the three requests that a SubNamespace needs at least, with patternName in place of its name.
type childPattern struct{ sub, namespace, status []byte }

const patternName = "bench-pattern"

// makePattern lets the operator make one child, and takes from it the bodies that the floor is to write.
func (b *bench) makePattern(ctx context.Context) (p childPattern, err error) {
	sub := build.SubNamespace(root, patternName)
	if err := b.Admin().Create(ctx, sub); err != nil {
		return p, err
	}
	if err := waitFor(ctx, "a first child", func(ctx context.Context) (bool, error) {
		err := b.Admin().Get(ctx, client.ObjectKeyFromObject(sub), sub)
		c := v1alpha1.FindCondition(sub.Status.Conditions, v1alpha1.ConditionReady)
		return c != nil && c.Status == metav1.ConditionTrue, err
	}); err != nil {
		return p, err
	}
	made := &corev1.Namespace{}
	if err := b.Admin().Get(ctx, client.ObjectKey{Name: patternName}, made); err != nil {
		return p, err
	}
	meta := func(m metav1.ObjectMeta) map[string]any {
		return map[string]any{"name": m.Name, "labels": m.Labels, "annotations": m.Annotations, "finalizers": m.Finalizers}
	}
	for body, content := range map[*[]byte]map[string]any{
		&p.sub:       {"apiVersion": v1alpha1.GroupVersion.String(), "kind": "SubNamespace", "metadata": meta(sub.ObjectMeta)},
		&p.namespace: {"apiVersion": "v1", "kind": "Namespace", "metadata": meta(made.ObjectMeta)},
		&p.status:    {"status": sub.Status},
	} {
		if *body, err = json.Marshal(content); err != nil {
			return p, err
		}
	}
	return p, nil
}

// writeChildren is the floor: 16 workers write the SubNamespace, Namespace and status of each child, one after the other. They have the
// operator's identity, so no webhook judges their requests. The bodies are known beforehand.
func (f *family) writeChildren(ctx context.Context, p childPattern, round int) (time.Duration, error) {
	c, err := f.floorClient(operatorUser)
	if err != nil {
		return 0, err
	}
	subs := "/apis/" + v1alpha1.GroupVersion.String() + "/namespaces/" + root + "/subnamespaces"
	begin := time.Now()
	err = inParallel(ctx, f.scale.children, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("floor-child-%d-%05d", round, i)
		write := func(r *rest.Request, body []byte, contentType, accept string) error {
			return r.Param("fieldManager", v1alpha1.OperatorName).Body(bytes.ReplaceAll(body, []byte(patternName), []byte(name))).
				SetHeader("Content-Type", contentType).SetHeader("Accept", accept).Do(ctx).Error()
		}
		if err := write(c.Post().AbsPath(subs), p.sub, "application/json", acceptJSON); err != nil {
			return err
		}
		if err := write(c.Post().Resource("namespaces"), p.namespace, "application/json", accept); err != nil {
			return err
		}
		return write(c.Patch(types.MergePatchType).AbsPath(subs, name, "status"), p.status, string(types.MergePatchType), acceptJSON)
	})
	return time.Since(begin), err
}

// makeNamespaces times the creation of plain Namespaces. The operator may not create those, so the admin does.
func (f *family) makeNamespaces(ctx context.Context, round int) (time.Duration, error) {
	c, err := f.floorClient(controlplane.Admin)
	if err != nil {
		return 0, err
	}
	bodies := make([][]byte, f.scale.children)
	for i := range bodies {
		ns := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
		ns.Name = fmt.Sprintf("floor-%d-%05d", round, i)
		if bodies[i], err = json.Marshal(ns); err != nil {
			return 0, err
		}
	}
	begin := time.Now()
	err = inParallel(ctx, len(bodies), func(ctx context.Context, i int) error {
		_, err := c.Post().Resource("namespaces").Body(bodies[i]).SetHeader("Content-Type", "application/json").SetHeader("Accept",
			accept).Do(ctx).Raw()
		return err
	})
	return time.Since(begin), err
}

// makeSubNamespaces makes SubNamespaces in the root as a user would, and waits until a watch has shown each as Ready.
func (f *family) makeSubNamespaces(ctx context.Context, round int) (time.Duration, error) {
	list := &v1alpha1.SubNamespaceList{}
	if err := f.Admin().List(ctx, list, client.InNamespace(root)); err != nil {
		return 0, err
	}
	events, err := f.As(controlplane.Admin).Watch(ctx, &v1alpha1.SubNamespaceList{}, client.InNamespace(root),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return 0, err
	}
	defer events.Stop()
	begin, took, prefix := time.Now(), time.Duration(0), fmt.Sprintf("child-%d-", round)
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() (err error) { // beside the writes, or the API server ends a watch that nobody reads
		took, err = awaitReady(ctx, events, prefix, f.scale.children, begin)
		return err
	})
	both.Go(func() error {
		return inParallel(ctx, f.scale.children, func(ctx context.Context, i int) error {
			return f.Admin().Create(ctx, build.SubNamespace(root, fmt.Sprintf("%s%05d", prefix, i)))
		})
	})
	return took, both.Wait()
}

// awaitReady returns how long after begin the last of n SubNamespaces with that prefix in their names became Ready.
func awaitReady(ctx context.Context, events watch.Interface, prefix string, n int, begin time.Time) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	ready := map[string]bool{}
	for len(ready) < n {
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("waiting for %d SubNamespaces, of which %d are Ready: %w", n, len(ready), ctx.Err())
		case event, open := <-events.ResultChan():
			sub, known := event.Object.(*v1alpha1.SubNamespace)
			if !open || !known {
				return 0, fmt.Errorf("the watch of SubNamespaces ended: %v", event.Object)
			}
			if c := v1alpha1.FindCondition(sub.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.Status == metav1.ConditionTrue &&
				strings.HasPrefix(sub.Name, prefix) {
				ready[sub.Name] = true
			}
		}
	}
	return time.Since(begin), nil
}

// countWrites adds to into how many writes the operator has made since a mark, by resource.
func (f *family) countWrites(ctx context.Context, mark audit.Position, into map[string]int) error {
	all, err := f.Requests(ctx, mark)
	for _, r := range all {
		if r.User == operatorUser && (r.IsWrite() || r.Resource == "events" && (r.Verb == "create" || r.Verb == "patch")) {
			into[strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/")]++
		}
	}
	return err
}
