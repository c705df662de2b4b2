package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/test/devcluster/audit"
)

// The three phases of copies, one after the other.
const (
	creates = iota
	updates
	deletes
)

var phases = []string{creates: "create", updates: "update", deletes: "delete"}

// goals are the events that the observer counts in each phase.
var goals = []watch.EventType{creates: watch.Added, updates: watch.Modified, deletes: watch.Deleted}

// batch is a set of sources × children copies that one side takes through the phases.
type batch interface {
	// prepare gets ready what need not be timed.
	prepare(ctx context.Context, phase int) error
	// run sends all requests of one phase, and returns when they are answered.
	run(ctx context.Context, phase int) error
}

// side is who works on a batch: the floor, which is a bare writer, or the operator.
type side int

const (
	floor side = iota
	operator
)

// turnOrder returns whose turn it is in one phase of a round, two turns a side. This order favours no side on a machine that gets slower or
// faster. Every other round begins with the other side.
func turnOrder(round int) [4]side {
	if round%2 == 0 {
		return [4]side{floor, operator, operator, floor}
	}
	return [4]side{operator, floor, floor, operator}
}

// times has how long one side took for each phase in one round.
type times [3]time.Duration

// fanOut measures B1 to B4, and B11.
func fanOut(ctx context.Context, b *bench) ([]result, error) {
	if err := b.startOperator(ctx); err != nil {
		return nil, err
	}
	if err := b.plantTree(ctx, b.scale.children); err != nil {
		return nil, err
	}
	o, err := b.observeIdle(ctx)
	if err != nil {
		return nil, err
	}
	defer o.stop()
	f := &fan{bench: b, observer: o, requests: &requests{bench: b}, running: true}
	var all [2][]times
	for round, repeats := 0, 0; round < b.scale.rounds; round++ {
		spent := f.cpu
		took, err := f.runRound(ctx, round, repeats)
		if err != nil {
			return nil, fmt.Errorf("round %d: %w", round, err)
		}
		for side, t := range took {
			all[side] = append(all[side], t)
		}
		if repeats < 3 && isOutlier(all[floor]) {
			repeats++
			round--
			f.cpu = spent
			all[floor], all[operator] = all[floor][:len(all[floor])-1], all[operator][:len(all[operator])-1]
		}
	}
	var results []result
	for phase, name := range phases {
		results = append(results, judgeQuotient(fmt.Sprintf("B%d", phase+1), name, all[floor], all[operator], phase))
	}
	return append(results, f.requests.result(), f.cpu.judge()), nil
}

// fan runs rounds of fanOut.
type fan struct {
	bench    *bench
	observer *observer
	requests *requests
	cpu      cpu
	running  bool // whether the operator runs
}

// runRound takes two batches of each side through the phases. The turns of one phase come right after one another, because a
// machine that others use too may be half as fast a minute later.
func (f *fan) runRound(ctx context.Context, round, repeats int) (took [2]times, err error) {
	order := turnOrder(round)
	var batches [4]batch
	for i, side := range order {
		name := fmt.Sprintf("%d-%d-%d", round, repeats, i)
		if side == floor {
			batches[i], err = newFloorBatch(f.bench, f.observer, "f-"+name)
		} else {
			batches[i], err = newOperatorBatch(ctx, f.bench, "o-"+name)
		}
		if err != nil {
			return took, err
		}
	}
	for phase, name := range phases {
		for i, side := range order {
			t, err := f.timeTurn(ctx, side, batches[i], phase)
			if err != nil {
				return took, fmt.Errorf("%s, turn %d: %w", name, i, err)
			}
			took[side][phase] += t / 2
		}
	}
	return took, nil
}

// timeTurn times one phase of one batch. The operator runs only in its own turns, and is idle when they begin.
func (f *fan) timeTurn(ctx context.Context, who side, work batch, phase int) (time.Duration, error) {
	if err := f.setRunning(ctx, who == operator); err != nil {
		return 0, err
	}
	if err := work.prepare(ctx, phase); err != nil {
		return 0, err
	}
	if who == floor {
		time.Sleep(time.Second) // before its turn, the operator must have been idle for as long
	}
	copies := f.bench.scale.sources * f.bench.scale.children
	mark, err := f.bench.Mark(ctx)
	if err != nil {
		return 0, err
	}
	f.observer.expect(goals[phase], copies)
	var took time.Duration
	err = f.measureCPU(who, phase, func() error {
		begin := time.Now()
		if err := work.run(ctx, phase); err != nil {
			return err
		}
		end, err := f.observer.wait(ctx)
		took = end.Sub(begin)
		return err
	})
	if err != nil || who == floor {
		return took, err
	}
	if err := f.bench.waitForIdle(ctx); err != nil {
		return 0, err
	}
	return took, f.requests.count(ctx, mark, phase, copies)
}

// setRunning starts or stops the operator.
func (f *fan) setRunning(ctx context.Context, wanted bool) error {
	was := f.running
	f.running = wanted
	switch {
	case wanted && !was:
		return f.bench.startOperator(ctx)
	case was && !wanted:
		_, err := f.bench.Operator.Stop()
		return err
	}
	return nil
}

// operatorBatch is a batch whose copies the operator writes.
type operatorBatch struct {
	bench   *bench
	name    string
	sources []client.Object
}

func newOperatorBatch(ctx context.Context, b *bench, name string) (*operatorBatch, error) {
	batch := &operatorBatch{bench: b, name: name}
	for i := range b.scale.sources {
		source := b.scale.newSource(i, fmt.Sprintf("%s-%d", name, i))
		if err := b.Admin().Create(ctx, source); err != nil {
			return nil, err
		}
		batch.sources = append(batch.sources, source)
	}
	return batch, nil
}

func (o *operatorBatch) prepare(context.Context, int) error { return nil }

func (o *operatorBatch) run(ctx context.Context, phase int) error {
	label := client.RawPatch(types.MergePatchType, o.bench.scale.startPatch())
	return inParallel(ctx, len(o.sources), func(ctx context.Context, i int) error {
		switch phase {
		case creates:
			return o.bench.Admin().Patch(ctx, o.sources[i], label)
		case updates:
			changed := o.bench.scale.kindOf(i).make(o.sources[i].GetName(), "b")
			changed.SetLabels(o.sources[i].GetLabels())
			changed.SetResourceVersion(o.sources[i].GetResourceVersion())
			return o.bench.Admin().Update(ctx, changed)
		}
		return o.bench.Admin().Delete(ctx, o.sources[i])
	})
}

// requests sums up what the operator asked of the API server in its turns: B4.
type requests struct {
	bench *bench

	copies, creates, updates, deletes, copyReads, sourceReads, lossReads int
	others                                                               []string
}

func (q *requests) count(ctx context.Context, since audit.Position, phase, copies int) error {
	all, err := q.bench.Requests(ctx, since)
	if err != nil {
		return err
	}
	if phase == creates {
		q.copies += copies
	}
	for _, r := range all {
		if r.User != operatorUser {
			continue
		}
		copied := q.bench.scale.measures(r.Group, r.Resource) && r.Namespace != ""
		switch {
		case r.Verb == "list" || r.Verb == "watch" || !r.IsWrite() && r.Resource == "" || isHousekeeping(r):
		case copied && r.Namespace == root && r.Verb == "get":
			q.sourceReads++
		case r.Verb == "get" && r.Resource == "namespaces" && r.Name == root:
			q.lossReads++
		case copied && r.Verb == "create":
			q.creates++
		case copied && r.Verb == "update":
			q.updates++
		case copied && r.Verb == "delete":
			q.deletes++
		case copied && r.Verb == "get":
			q.copyReads++
		default:
			q.others = append(q.others, r.String())
		}
	}
	return nil
}

func isHousekeeping(r audit.Request) bool {
	return r.Resource == "leases" || r.Resource == "events" || r.Resource == "tokenreviews" || r.Resource == "subjectaccessreviews"
}

// result judges B4. The operator may read each source once in each of its two versions. For a deleted source, it may look once for the
// source and once for its namespace.
func (q *requests) result() result {
	n := float64(q.copies)
	turns := q.copies / (q.bench.scale.sources * q.bench.scale.children)
	sources := turns * q.bench.scale.sources
	r := result{id: "B4", counted: true, text: fmt.Sprintf(
		"requests per copy: create %.2f update %.2f delete %.2f, reads of copies %d, reads of sources %.2f a version, looks for a lost source "+
			"and its namespace %.2f, others %d %v",
		float64(q.creates)/n, float64(q.updates)/n, float64(q.deletes)/n, q.copyReads,
		float64(q.sourceReads-q.lossReads)/float64(2*sources), float64(2*q.lossReads)/float64(sources), len(q.others), q.others)}
	r.passed = q.creates == q.copies && q.updates == q.copies && q.deletes == q.copies && q.copyReads == 0 &&
		q.sourceReads-q.lossReads <= 2*sources && q.lossReads <= sources && len(q.others) == 0
	return r
}
