package load_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
)

// load is a World with people at work in it.
type load struct {
	*devcluster.World
	*oracle
	*authorizer
	seed  uint64
	seen  cache.Cache // the cache of the observer
	names atomic.Int64

	timing sync.Mutex
	times  map[string][]time.Duration // guarded by timing
}

const (
	// effect is the most time until an operation has its effect, with operators that are killed meanwhile.
	effect = 5 * time.Minute
	// pause is the most time between two operations of a person.
	pause = 8 * time.Second
)

func (l *load) record(what string, begin time.Time) {
	l.timing.Lock()
	defer l.timing.Unlock()
	l.times[what] = append(l.times[what], time.Since(begin))
}

// effects waits until an operation that began then has its effect, and records how long that took.
func (l *load) effects(ctx context.Context, what string, begin time.Time, done func(context.Context) (bool, error)) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, effect, true, done)
	l.record(what, begin)
	if err != nil {
		return fmt.Errorf("waiting until %s: %w", what, err)
	}
	return nil
}

// operation is something that a person does in a tenant.
type operation func(l *load, ctx context.Context, r *rand.Rand, t *tenant, person string) error

// work has a person do one operation after another until ctx is done. Operations that have begun may go on until context work is done.
func (l *load) work(ctx, work context.Context, n int) {
	r, t := rand.New(rand.NewPCG(l.seed, uint64(n))), l.tenants[n/2%len(l.tenants)]
	operations := []operation{(*load).edit, (*load).edit, (*load).edit, (*load).spread, (*load).create, (*load).remove, (*load).move}
	for ctx.Err() == nil {
		if err := pick(r, operations)(l, work, r, t, t.people[n%2]); err != nil {
			l.blame(failed, "%s in tenant %s: %v", t.people[n%2], t.name, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(rand.N(pause)):
		}
	}
}

// edit has the tenant's first person, a manager, add and remove people, up to three in quick succession.
func (l *load) edit(ctx context.Context, r *rand.Rand, t *tenant, _ string) error {
	if !t.editing.TryLock() {
		return nil
	}
	defer t.editing.Unlock()
	of, leaf := list(r.IntN(3)), pick(r, t.fixed)
	for left := r.IntN(3); ; left-- {
		user, what, next, generation := l.change(r, t, of)
		q := [...]question{within(works[0], user, leaf), edits("update", user, t), becomes(user, t)}[of]
		l.remember(question{user: user, tenant: t, place: leaf})
		begin, lns := time.Now(), build.Tenant(t.name).Object()
		body, _ := json.Marshal(map[string]any{"spec": map[string]any{of.String(): build.Users(next...)}})
		if err := l.As(t.people[0]).Patch(ctx, lns, client.RawPatch(types.MergePatchType, body)); err != nil {
			return fmt.Errorf("editing %s: %w", of, err)
		}
		if lns.Generation != generation {
			return fmt.Errorf("generation %d of an LNamespace after %d", lns.Generation, generation-1)
		}
		if want := l.says(q); left == 0 {
			return l.effects(ctx, what, begin, func(ctx context.Context) (bool, error) {
				allowed, err := l.ask(ctx, q)
				return allowed == want, err
			})
		}
	}
}

// change draws the next version of a list, before it is sent: its effect may come before the answer does.
func (l *load) change(r *rand.Rand, t *tenant, of list) (user, what string, people []string, generation int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := t.versions[len(t.versions)-1]
	movable := slices.DeleteFunc(slices.Clone(next[of]), func(u string) bool { return slices.Contains(t.people[:], u) })
	others := slices.DeleteFunc(slices.Clone(l.people[1:]), func(u string) bool {
		return slices.Contains(t.people[:], u) || slices.Contains(next[of], u)
	})
	if len(others) == 0 || r.IntN(5) < len(movable) {
		user, what = pick(r, movable), fmt.Sprintf("%s: removed", of)
		next[of] = slices.DeleteFunc(slices.Clone(next[of]), func(u string) bool { return u == user })
	} else {
		user, what = pick(r, others), fmt.Sprintf("%s: added", of)
		next[of] = append(slices.Clone(next[of]), user)
	}
	t.versions = append(t.versions, next)
	return user, what, next[of], int64(len(t.versions))
}

// create makes a sub-namespace, with a stranger in it.
func (l *load) create(ctx context.Context, r *rand.Rand, t *tenant, person string) error {
	_, err := l.plant(ctx, t, pick(r, t.fixed), person)
	return err
}

func (l *load) plant(ctx context.Context, t *tenant, parent *place, person string) (*place, error) {
	name := fmt.Sprintf("%s-%d", t.name, l.names.Add(1))
	p, begin := l.join(name, parent.name, t), time.Now()
	p.busy = true // until it is settled; nobody else has it yet
	if err := l.As(person).Create(ctx, build.SubNamespace(parent.name, name)); err != nil {
		return nil, fmt.Errorf("creating SubNamespace %s: %w", name, err)
	}
	if err := l.effects(ctx, "SubNamespace: created", begin, l.isReady(parent.name, name)); err != nil {
		return nil, err
	}
	if err := l.effects(ctx, "SubNamespace: its people work in it", begin, func(ctx context.Context) (bool, error) {
		return l.ask(ctx, within(works[0], t.people[0], p))
	}); err != nil {
		return nil, err
	}
	if err := l.Admin().Create(ctx, build.ConfigMap(name, "stranger", "1", labelStranger, "")); err != nil {
		return nil, fmt.Errorf("creating a stranger in %s: %w", name, err)
	}
	return p, l.release(ctx, p)
}

// isReady returns a function that reports whether a SubNamespace is Ready, and its Namespace exists below parent.
func (l *load) isReady(parent, name string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		sub, namespace := build.SubNamespace(parent, name), build.Namespace(name)
		if err := l.seen.Get(ctx, client.ObjectKeyFromObject(sub), sub); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		c := v1alpha1.FindCondition(sub.Status.Conditions, v1alpha1.ConditionReady)
		if c == nil || c.Status != metav1.ConditionTrue {
			return false, nil
		}
		err := l.seen.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		return err == nil && namespace.Labels[v1alpha1.LabelParent] == parent, client.IgnoreNotFound(err)
	}
}

// take returns a namespace of the tenant with which nobody else is busy, nil for none.
func (l *load) take(r *rand.Rand, t *tenant) *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := r.IntN(len(l.all))
	for i := range l.all {
		p := l.all[(from+i)%len(l.all)]
		if p.settled && !p.busy && p.homes[0].of == t && !slices.Contains(t.fixed, p) {
			p.busy = true
			return p
		}
	}
	return nil
}

// release waits until a namespace is settled, and lets others take it.
func (l *load) release(ctx context.Context, p *place) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, effect, true, func(context.Context) (bool, error) {
		return l.isSettled(p), nil
	})
	if err != nil {
		return fmt.Errorf("waiting until %s has its bindings: %w", p.name, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p.busy = false
	return nil
}

// remove deletes a sub-namespace.
func (l *load) remove(ctx context.Context, r *rand.Rand, t *tenant, person string) error {
	p := l.take(r, t)
	if p == nil {
		return nil
	}
	begin := time.Now()
	l.condemn(p)
	if err := l.As(person).Delete(ctx, build.SubNamespace(p.parent, p.name)); err != nil {
		return fmt.Errorf("deleting SubNamespace %s: %w", p.name, err)
	}
	err := l.effects(ctx, "SubNamespace: deleted", begin, func(ctx context.Context) (bool, error) {
		err := l.seen.Get(ctx, client.ObjectKey{Name: p.name}, &corev1.Namespace{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	l.later(func() { p.homes = nil })
	return err
}

// move has a cluster admin move a namespace to another place, mostly in another tree, as `kubectl warren move` does.
func (l *load) move(ctx context.Context, r *rand.Rand, t *tenant, _ string) error {
	p := l.take(r, t)
	if p == nil {
		return nil
	}
	to, old, begin := pick(r, l.tenants), p.parent, time.Now()
	parent := pick(r, to.fixed).name
	if parent == old {
		return l.release(ctx, p)
	}
	l.remember(question{user: pick(r, t.people[:]), tenant: t, place: p})
	l.join(p.name, parent, to)
	if err := l.Admin().Create(ctx, build.SubNamespace(parent, p.name)); err != nil {
		return fmt.Errorf("creating SubNamespace %s/%s: %w", parent, p.name, err)
	}
	body := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, v1alpha1.LabelParent, parent)
	if err := l.Admin().Patch(ctx, build.Namespace(p.name), client.RawPatch(types.MergePatchType, body)); err != nil {
		return fmt.Errorf("moving %s to %s: %w", p.name, parent, err)
	}
	if err := l.Admin().Delete(ctx, build.SubNamespace(old, p.name)); err != nil {
		return fmt.Errorf("deleting SubNamespace %s/%s: %w", old, p.name, err)
	}
	if err := l.effects(ctx, "namespace: moved", begin, l.isReady(parent, p.name)); err != nil {
		return err
	}
	if err := l.effects(ctx, "namespace: moved, and its new people work in it", begin, func(ctx context.Context) (bool, error) {
		return l.ask(ctx, within(works[0], to.people[0], p))
	}); err != nil {
		return err
	}
	return l.release(ctx, p)
}

// spread has a person create, change or delete one of three Secrets in the root, which are sources.
func (l *load) spread(ctx context.Context, r *rand.Rand, t *tenant, person string) error {
	if !t.sourcing.TryLock() {
		return nil
	}
	defer t.sourcing.Unlock()
	name, value := fmt.Sprint("shared-", r.IntN(3)), strconv.FormatInt(l.names.Add(1), 10)
	source := build.Source(build.Secret(t.name, name, value), v1alpha1.ModeUpdate)
	what, did, begin := "Secret: changed", l.As(person).Update, time.Now()
	switch _, exists := t.sources[name]; {
	case !exists:
		what = "Secret: created"
		did = func(ctx context.Context, s client.Object, _ ...client.UpdateOption) error {
			return l.As(person).Create(ctx, s)
		}
	case r.IntN(4) == 0:
		what, value = "Secret: deleted", ""
		did = func(ctx context.Context, s client.Object, _ ...client.UpdateOption) error {
			return l.As(person).Delete(ctx, s)
		}
	}
	if err := did(ctx, source); err != nil {
		return fmt.Errorf("%s: %s/%s: %w", what, t.name, name, err)
	}
	if t.sources[name] = value; value == "" {
		delete(t.sources, name)
	}
	return l.effects(ctx, what, begin, l.hasSecret(pick(r, t.fixed[1:len(t.fixed)-1]).name, name, value))
}

// hasSecret returns a function that reports whether a namespace has a Secret with that value, or none for "".
func (l *load) hasSecret(namespace, name, value string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		s := build.Secret(namespace, name, "")
		if err := l.seen.Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
			return apierrors.IsNotFound(err) && value == "", client.IgnoreNotFound(err)
		}
		return string(s.Data["key"]) == value, nil
	}
}

// distribute has a cluster admin change a ResourceDistribution to all roots again and again until ctx is done.
func (l *load) distribute(ctx, work context.Context) {
	for ctx.Err() == nil {
		if err := l.distributeOnce(work); err != nil {
			l.blame(failed, "distributing: %v", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (l *load) distributeOnce(ctx context.Context) error {
	begin, value := time.Now(), strconv.FormatInt(l.names.Add(1), 10)
	rd := &v1alpha1.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: "given"}}
	if err := l.Admin().Get(ctx, client.ObjectKeyFromObject(rd), rd); client.IgnoreNotFound(err) != nil {
		return err
	}
	rd.Spec.Resource = runtime.RawExtension{Raw: fmt.Appendf(nil,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"given"},"stringData":{"key":%q}}`, value)}
	rd.Spec.Targets.NamespaceLabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}}
	write := func() error { return l.Admin().Update(ctx, rd) }
	if rd.UID == "" {
		write = func() error { return l.Admin().Create(ctx, rd) }
	}
	if err := write(); err != nil {
		if apierrors.IsConflict(err) { // with the operator's status
			return nil
		}
		return err
	}
	return l.effects(ctx, "ResourceDistribution: in all roots", begin, func(ctx context.Context) (bool, error) {
		for _, t := range l.tenants {
			if has, err := l.hasSecret(t.name, "given", value)(ctx); !has {
				return false, err
			}
		}
		return true, nil
	})
}
