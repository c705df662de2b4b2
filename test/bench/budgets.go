package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	shares "github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// These are the budgets of budgets over a tree. Times are in milliseconds, or in seconds where a Deployment takes them.
const (
	fillWrites     = 1.0  // writes of the operator for each pod while a tree fills
	refusedWrites  = 10.0 // writes a second of a full tree that is refused all the time
	roomLimit      = 120.0
	spreadLimit    = 5.0
	wholeLimit     = 10.0
	neighbourLimit = 1.2
	planLimit      = 20.0
	memoryLimit    = 2.0 // KiB for each namespace below a limit
)

// quotaNamespaces is how many namespaces share a limit of quotaPods pods, where nothing else is said.
const quotaNamespaces, quotaPods = 10, 30

// measureBudgets measures what a budget over a tree costs, and how strict it is, beside a native ResourceQuota of one namespace and, with
// flag -hnc, the HierarchicalResourceQuota of HNC. Two API servers serve all pods.
func measureBudgets(ctx context.Context, b *bench) ([]result, error) {
	q, err := newQuotaBench(ctx, b)
	if err != nil {
		return nil, err
	}
	for _, l := range q.limiters() {
		if err := q.compare(ctx, l); err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
	}
	for _, measure := range []func(context.Context) error{
		q.measureRoom, q.measureRefused, q.measureNeighbour, q.measurePlan, q.measureMemory,
	} {
		if err := measure(ctx); err != nil {
			return nil, err
		}
	}
	return []result{{id: "budgets", counted: true, passed: !q.failed, text: "every figure above that has a budget"}}, nil
}

// quotaBench prints each figure as soon as it has it, and notes whether one is over its budget.
type quotaBench struct {
	*bench
	servers []client.WithWatch // the admin's clients of two API servers
	trees   int                // how many trees were made
	failed  bool
}

func newQuotaBench(ctx context.Context, b *bench) (*quotaBench, error) {
	if err := b.startOperator(ctx); err != nil {
		return nil, err
	}
	address, err := b.ControlPlane.AddAPIServer(ctx)
	if err != nil {
		return nil, err
	}
	config := b.Config(controlplane.Admin)
	config.Host = address
	second, err := b.Client(config)
	return &quotaBench{bench: b, servers: []client.WithWatch{b.Admin(), second}}, err
}

func (q *quotaBench) tell(r result) { q.failed = !q.scale.tell(r) || q.failed }

// quotaTree is a tree of namespaces; the first one is its root.
type quotaTree []string

// plant makes a tree of n namespaces, and waits until pods can be created there.
func (q *quotaBench) plant(ctx context.Context, n int, mark func(parent, name string) *corev1.Namespace) (t quotaTree, err error) {
	q.trees++
	root := fmt.Sprintf("quota-%d", q.trees)
	for i := range n {
		t = append(t, fmt.Sprintf("%s-%d", root, i))
	}
	if err := q.Admin().Create(ctx, mark("", t[0])); err != nil {
		return nil, err
	}
	err = inParallel(ctx, n-1, func(ctx context.Context, i int) error { return q.Admin().Create(ctx, mark(t[0], t[i+1])) })
	if err != nil {
		return nil, err
	}
	return t, inParallel(ctx, n, func(ctx context.Context, i int) error {
		return waitFor(ctx, "a service account", func(ctx context.Context) (bool, error) {
			err := q.Admin().Get(ctx, client.ObjectKey{Namespace: t[i], Name: "default"}, &corev1.ServiceAccount{})
			return err == nil, client.IgnoreNotFound(err)
		})
	})
}

// limitTree sets a limit on pods in the root of a tree.
func (q *quotaBench) limitTree(ctx context.Context, t quotaTree, pods int) error {
	limit := &v1alpha1.HierarchicalResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: t[0], Name: "bench"}}
	limit.Spec.Hard = v1alpha1.Budget(podList(pods))
	if err := q.Admin().Create(ctx, limit); err != nil {
		return err
	}
	return q.awaitQuotas(ctx, t, shares.QuotaName)
}

// awaitQuotas waits until Kubernetes has counted a ResourceQuota in each namespace.
func (q *quotaBench) awaitQuotas(ctx context.Context, t quotaTree, name string) error {
	return waitFor(ctx, "counted ResourceQuotas", func(ctx context.Context) (bool, error) {
		all, counted := &corev1.ResourceQuotaList{}, 0
		err := q.Admin().List(ctx, all, client.MatchingFields{"metadata.name": name})
		for i := range all.Items {
			if _, is := all.Items[i].Status.Hard[corev1.ResourcePods]; is && slices.Contains(t, all.Items[i].Namespace) {
				counted++
			}
		}
		return counted == len(t), err
	})
}

// removeTree deletes all pods and Deployments of a tree, so that it costs nothing while the next one is measured.
func (q *quotaBench) removeTree(ctx context.Context, t quotaTree) error {
	return inParallel(ctx, len(t), func(ctx context.Context, i int) error {
		if err := q.Admin().DeleteAllOf(ctx, &appsv1.Deployment{}, client.InNamespace(t[i])); err != nil {
			return err
		}
		return q.Admin().Delete(ctx, build.Namespace(t[i]))
	})
}

// countPods counts the pods of a tree.
func (q *quotaBench) countPods(ctx context.Context, t quotaTree) (n int, err error) {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	err = q.Admin().List(ctx, all)
	for i := range all.Items {
		if slices.Contains(t, all.Items[i].Namespace) {
			n++
		}
	}
	return n, err
}

// countShareWrites counts the operator's writes of ResourceQuotas while do runs.
func (q *quotaBench) countShareWrites(ctx context.Context, do func() error) (writes int, err error) {
	mark, err := q.Mark(ctx)
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	all, err := q.Writes(ctx, mark)
	for _, one := range all {
		if strings.Contains(one.URI, "/resourcequotas") {
			writes++
		}
	}
	return writes, err
}

// measureRoom measures how many pods far beyond the share of their namespace are admitted at the first try while the tree has room: one
// after the other, and of many clients at once. One API server serves them, for two collide at one ResourceQuota by themselves.
func (q *quotaBench) measureRoom(ctx context.Context) error {
	for _, one := range []struct{ pods, clients, most int }{{q.rounds(100, 20), 1, 1}, {q.rounds(200, 40), 16, 2}} {
		t, err := q.plant(ctx, quotaNamespaces, markWarren)
		if err != nil {
			return err
		}
		if err := q.limitTree(ctx, t, one.pods+one.pods/5); err != nil {
			return err
		}
		if err := q.awaitMark(ctx, t[1]); err != nil {
			return err
		}
		took, refused, err := q.createAtOnce(ctx, t[1], one.pods, one.clients)
		if err != nil {
			return err
		}
		p95 := percentile(took, 95)
		q.tell(result{id: "room", passed: refused <= one.most && ms(p95) <= roomLimit, text: fmt.Sprintf("pods beyond the share, of %d clients: "+
			"%d of %d refused at the first try (%d), median %.0fms, 95 of 100 within %.0fms, budget %.0fms", one.clients, refused, one.pods,
			one.most, ms(medianOf(took)), ms(p95), roomLimit)})
		if err := q.removeTree(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// awaitMark waits until webhook room is asked about a namespace.
func (q *quotaBench) awaitMark(ctx context.Context, namespace string) error {
	err := waitFor(ctx, "label share", func(ctx context.Context) (bool, error) {
		n := &corev1.Namespace{}
		err := q.Admin().Get(ctx, client.ObjectKey{Name: namespace}, n)
		return n.Labels[v1alpha1.LabelShare] != "", err
	})
	time.Sleep(time.Second) // an API server learns of the label a moment later
	return err
}

// createAtOnce creates pods with so many clients, and returns how long each took and how many were refused.
func (q *quotaBench) createAtOnce(ctx context.Context, namespace string, pods, clients int) (took []time.Duration, refused int, err error) {
	var mu sync.Mutex
	work := make(chan int, pods)
	for i := range pods {
		work <- i
	}
	close(work)
	err = inParallel(ctx, clients, func(ctx context.Context, _ int) error {
		for range work {
			begin := time.Now()
			err := q.Admin().Create(ctx, build.Pod(namespace))
			mu.Lock()
			if took = append(took, time.Since(begin)); err != nil {
				refused++
			}
			mu.Unlock()
			if err != nil && !isRefusedPod(err) {
				return err
			}
		}
		return nil
	})
	return took, refused, err
}

// refuse sends the Event of a controller whose object was refused.
func (q *quotaBench) refuse(ctx context.Context, namespace string, pods int64) error {
	list := podList(int(pods))
	return q.Admin().Create(ctx, build.FailedCreate(namespace, shares.FormatRefusal(list, list, list)))
}

// measureRefused measures what a full tree writes, all of whose namespaces want more.
func (q *quotaBench) measureRefused(ctx context.Context) error {
	t, err := q.plant(ctx, quotaNamespaces, markWarren)
	if err != nil {
		return err
	}
	if err := q.limitTree(ctx, t, quotaPods); err != nil {
		return err
	}
	if err := q.deployAll(ctx, t, quotaPods); err != nil {
		return err
	}
	if _, err := q.awaitPods(ctx, t, quotaPods); err != nil {
		return err
	}
	length := max(q.scale.idle/2, 5*time.Second)
	writes, err := q.countShareWrites(ctx, func() error { return q.touchFor(ctx, t, length, time.Second/5) })
	each := float64(writes) / length.Seconds()
	q.tell(result{id: "refused", counted: true, passed: each <= refusedWrites, text: fmt.Sprintf("writes a second of a full tree of %d "+
		"namespaces, each of which is refused five times a second: %.1f, budget %.0f", len(t), each, refusedWrites)})
	if err != nil {
		return err
	}
	return q.removeTree(ctx, t)
}

// touchFor touches each Deployment again and again, so that its controllers try to create what was refused.
func (q *quotaBench) touchFor(ctx context.Context, t quotaTree, length, pause time.Duration) error {
	for end := time.Now().Add(length); time.Now().Before(end); {
		begin := time.Now()
		if err := q.touchAll(ctx, t); err != nil {
			return err
		}
		time.Sleep(max(pause-time.Since(begin), 0))
	}
	return nil
}

// measureNeighbour measures the creation of a pod in one tree while 20 namespaces of another one are refused once a second.
func (q *quotaBench) measureNeighbour(ctx context.Context) error {
	t, err := q.plant(ctx, 20, markWarren)
	if err != nil {
		return err
	}
	other, err := q.plant(ctx, 2, markWarren)
	if err != nil {
		return err
	}
	if err := errors.Join(q.limitTree(ctx, t, quotaPods), q.limitTree(ctx, other, 100000), q.deployAll(ctx, t, quotaPods)); err != nil {
		return err
	}
	var alone, beside []time.Duration
	for round := range q.rounds(10, 2) {
		one, two, err := q.timeBeside(ctx, t, other[1])
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		alone, beside = append(alone, one), append(beside, two)
	}
	ratio := float64(medianOf(beside)) / float64(medianOf(alone))
	q.tell(result{id: "neighbour", passed: ratio <= neighbourLimit,
		text: fmt.Sprintf("a pod of another tree: alone %.1fms, beside %d namespaces "+
			"that are refused once a second %.1fms, ratio %.2f, budget %.2f", ms(medianOf(alone)), len(t), ms(medianOf(beside)), ratio,
			neighbourLimit)})
	return errors.Join(q.removeTree(ctx, t), q.removeTree(ctx, other))
}

// timeBeside returns the median times of pods in a namespace, at rest and while a tree is refused.
func (q *quotaBench) timeBeside(ctx context.Context, t quotaTree, namespace string) (alone, beside time.Duration, err error) {
	one, err := q.timePods(ctx, namespace, q.rounds(300, 20))
	if err != nil {
		return 0, 0, err
	}
	flood, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = q.touchFor(flood, t, time.Hour, time.Second) // it ends when it is stopped
	}()
	two, err := q.timePods(ctx, namespace, q.rounds(300, 20))
	stop()
	<-ended
	if err != nil {
		return 0, 0, err
	}
	return medianOf(one), medianOf(two), nil
}

// measurePlan measures a plan of a large tree of which one namespace was refused.
func (q *quotaBench) measurePlan(context.Context) error {
	rows := make([]shares.Row, 4000)
	for i := range rows {
		hard := shares.Amounts{"pods": 20, "requests.cpu": 4000, "requests.memory": 8 << 30}
		used := shares.Amounts{"pods": 10, "requests.cpu": 2000, "requests.memory": 4 << 30}
		rows[i] = shares.Row{Namespace: fmt.Sprintf("n-%04d", i), Under: []int{0}, Spec: hard, Counted: hard, Used: used}
	}
	hard := shares.Amounts{"pods": 80010, "requests.cpu": 16_004_000, "requests.memory": 32008 << 30}
	limits := []shares.Limit{{Name: "tenant t", Hard: hard}}
	var took []time.Duration
	for range 20 {
		now := time.Now()
		refusals := map[string]shares.Refusal{"n-2000": {At: now, Requested: shares.Amounts{"pods": 15}}}
		if len(shares.Plan(limits, rows, refusals, now)) == 0 {
			return fmt.Errorf("a plan for a refused namespace changes nothing")
		}
		took = append(took, time.Since(now))
	}
	q.tell(result{id: "plan", passed: ms(medianOf(took)) <= planLimit,
		text: fmt.Sprintf("a plan of %d namespaces and three resources: %.1fms, budget %.0fms",
			len(rows), ms(medianOf(took)), planLimit)})
	return nil
}

// measureMemory measures what shares of a large tree cost in memory, and that the operator writes nothing at rest and after a restart.
func (q *quotaBench) measureMemory(ctx context.Context) error {
	size := q.rounds(4000, 40)
	t, err := q.plant(ctx, size, markWarren)
	if err != nil {
		return err
	}
	if err := q.Operator.Restart(ctx); err != nil {
		return err
	}
	before, err := q.residentMemory(ctx)
	if err != nil {
		return err
	}
	if err := q.limitTree(ctx, t, 10*size); err != nil {
		return err
	}
	if err := q.waitForIdle(ctx); err != nil {
		return err
	}
	if err := q.Operator.Restart(ctx); err != nil {
		return err
	}
	var after float64
	writes, err := q.countShareWrites(ctx, func() (err error) {
		after, err = q.residentMemory(ctx)
		return err
	})
	each := (after - before) / 1024 / float64(size)
	q.tell(result{id: "memory", passed: each <= memoryLimit,
		text: fmt.Sprintf("memory %.1f MiB, with shares in %d namespaces %.1f MiB: %.2f KiB each, "+
			"budget %.0f KiB", before/mebibyte, size, after/mebibyte, each, memoryLimit)})
	q.tell(result{id: "rest", counted: true, passed: writes == 0,
		text: fmt.Sprintf("writes of shares after a restart, and at rest: %d, budget 0", writes)})
	return err
}
