package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/audit"
)

// times are how long create, update and delete took.
type times [3]time.Duration

func mean(turns []times) (m times) {
	for phase := range m {
		for _, t := range turns {
			m[phase] += t[phase] / time.Duration(len(turns))
		}
	}
	return m
}

// turn is what one side does: three phases over sources × children copies. number tells its objects from those of the others.
type turn func(ctx context.Context, b *bench, o *observer, number int) (times, error)

// sequence is who has the turns of a round. Each side has four, and no trend of the machine favours one: what is added by
// a machine that gets slower or faster, evenly or ever more, is the same for both. Every other round begins with the other.
func sequence(round int) []string {
	sides := [2]string{"floor", "operator"}
	var order []string
	for _, i := range []int{0, 1, 1, 0, 1, 0, 0, 1} {
		order = append(order, sides[(i+round)%2])
	}
	return order
}

// fanOut measures B1 to B4.
func fanOut(ctx context.Context, b *bench) ([]result, error) {
	if err := b.start(ctx); err != nil {
		return nil, err
	}
	if err := b.plant(ctx, b.scale.children); err != nil {
		return nil, err
	}
	o, err := b.observeIdle(ctx)
	if err != nil {
		return nil, err
	}
	defer o.watch.Stop()
	counted := &requests{bench: b}
	turns := map[string]turn{"floor": floorTurn, "operator": counted.operatorTurn}
	all := map[string][]times{}
	if _, err := b.Operator.Stop(); err != nil {
		return nil, err
	}
	for round, repeats := 0, 0; round < b.scale.rounds; round++ {
		order := sequence(round)
		took := map[string][]times{}
		for i, side := range order {
			t, err := turns[side](ctx, b, o, len(order)*round+i)
			if err != nil {
				return nil, fmt.Errorf("round %d, %s: %w", round, side, err)
			}
			took[side] = append(took[side], t)
		}
		for side := range turns {
			all[side] = append(all[side], mean(took[side]))
		}
		if repeats < 3 && outlier(all["floor"]) {
			repeats++
			round--
			all["floor"], all["operator"] = all["floor"][:len(all["floor"])-1], all["operator"][:len(all["operator"])-1]
		}
	}
	var results []result
	for i, name := range []string{"create", "update", "delete"} {
		results = append(results, quotient(fmt.Sprintf("B%d", i+1), name, all["floor"], all["operator"], i, b.scale.small))
	}
	return append(results, counted.result()), nil
}

// operatorTurn lets the operator do it.
func (q *requests) operatorTurn(ctx context.Context, b *bench, o *observer, number int) (t times, err error) {
	if err := b.start(ctx); err != nil {
		return t, err
	}
	names := make([]string, b.scale.sources)
	sources := make([]*corev1.Secret, b.scale.sources)
	for i := range names {
		names[i] = fmt.Sprintf("o-%d-%d", number, i)
		sources[i] = secret(names[i], "a")
		if err := b.Admin().Create(ctx, sources[i]); err != nil {
			return t, err
		}
	}
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+v1alpha1.LabelPropagate+`":"update"}}}`))
	copies := b.scale.sources * b.scale.children
	mark, err := b.Mark(ctx)
	if err != nil {
		return t, err
	}
	steps := []struct {
		goal watch.EventType
		do   func(i int) error
	}{
		{watch.Added, func(i int) error { return b.Admin().Patch(ctx, sources[i], label) }},
		{watch.Modified, func(i int) error {
			sources[i].Data["key"][0]++
			return b.Admin().Update(ctx, sources[i])
		}},
		{watch.Deleted, func(i int) error { return b.Admin().Delete(ctx, sources[i]) }},
	}
	for phase, step := range steps {
		o.expect(step.goal, copies)
		begin := time.Now()
		if err := inParallel(ctx, len(sources), func(_ context.Context, i int) error { return step.do(i) }); err != nil {
			return t, err
		}
		end, err := o.wait(ctx)
		if err != nil {
			return t, err
		}
		t[phase] = end.Sub(begin)
		if err := b.idle(ctx); err != nil {
			return t, err
		}
	}
	if err := q.count(ctx, mark, copies); err != nil {
		return t, err
	}
	_, err = b.Operator.Stop()
	return t, err
}

// requests sums up what the operator asked of the API server in its turns: B4.
type requests struct {
	bench *bench

	copies, creates, updates, deletes, copyReads, sourceReads, lossReads int
	others                                                               []string
}

func (q *requests) count(ctx context.Context, since audit.Position, copies int) error {
	all, err := q.bench.Requests(ctx, since)
	if err != nil {
		return err
	}
	q.copies += copies
	for _, r := range all {
		if r.User != operator {
			continue
		}
		secret := r.Group == "" && r.Resource == "secrets" && r.Namespace != ""
		switch {
		case r.Verb == "list" || r.Verb == "watch" || !r.IsWrite() && r.Resource == "" || isHousekeeping(r):
		case secret && r.Namespace == root && r.Verb == "get":
			q.sourceReads++
		case r.Verb == "get" && r.Resource == "namespaces" && r.Name == root:
			q.lossReads++
		case secret && r.Verb == "create":
			q.creates++
		case secret && r.Verb == "update":
			q.updates++
		case secret && r.Verb == "delete":
			q.deletes++
		case secret && r.Verb == "get":
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

// result judges B4. A source has two versions that are read, and when it goes it and its namespace are looked for once.
func (q *requests) result() result {
	n := float64(q.copies)
	turns := q.copies / (q.bench.scale.sources * q.bench.scale.children)
	sources := turns * q.bench.scale.sources
	r := result{id: "B4", text: fmt.Sprintf(
		"requests per copy: create %.2f update %.2f delete %.2f, reads of copies %d, reads of sources %.2f a version, looks for a lost source and its namespace %.2f, others %d %v",
		float64(q.creates)/n, float64(q.updates)/n, float64(q.deletes)/n, q.copyReads,
		float64(q.sourceReads-q.lossReads)/float64(2*sources), float64(2*q.lossReads)/float64(sources), len(q.others), q.others)}
	r.passed = q.creates == q.copies && q.updates == q.copies && q.deletes == q.copies && q.copyReads == 0 &&
		q.sourceReads-q.lossReads <= 2*sources && q.lossReads <= sources && len(q.others) == 0
	return r
}
