package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
)

// bench is a world in which something is measured.
type bench struct {
	*devcluster.World
	scale scale
	label string // the label of the copies that are observed; empty means inherited-from
}

// root is the namespace of the sources.
const root = "bench"

func childName(i int) string { return fmt.Sprintf("bench-%05d", i) }

// makeTree makes a root and, below it, as many children as children says; name returns their names.
func (b *bench) makeTree(ctx context.Context, root string, name func(int) string, children int) error {
	if err := b.Admin().Create(ctx, build.Root(root)); err != nil {
		return err
	}
	return inParallel(ctx, children, func(ctx context.Context, i int) error {
		return b.Admin().Create(ctx, build.Child(name(i), root))
	})
}

// plantTree makes the root and its children, and waits until the operator, which must run, has labelled the children and counted them.
func (b *bench) plantTree(ctx context.Context, children int) error {
	if err := b.makeTree(ctx, root, childName, children); err != nil {
		return err
	}
	err := waitFor(ctx, "tree labels on every child", func(ctx context.Context) (bool, error) {
		namespaces := &corev1.NamespaceList{}
		err := b.Admin().List(ctx, namespaces, client.MatchingLabels{v1alpha1.TreeLabel(root): "1"})
		return len(namespaces.Items) == children, err
	})
	if err != nil {
		return err
	}
	return waitFor(ctx, "a report on the root that counts them", func(ctx context.Context) (bool, error) {
		hc := build.Hierarchy(root)
		err := b.Admin().Get(ctx, client.ObjectKeyFromObject(hc), hc)
		return int(hc.Status.ChildCount) == children && v1alpha1.FindCondition(hc.Status.Conditions, v1alpha1.ConditionPropagated) != nil,
			client.IgnoreNotFound(err)
	})
}

// startOperator runs the operator and waits until it is ready and idle.
func (b *bench) startOperator(ctx context.Context) error {
	if b.Operator == nil {
		if _, err := b.StartOperator(ctx); err != nil {
			return err
		}
	} else if err := b.Operator.Start(ctx); err != nil {
		return err
	}
	return b.waitForIdle(ctx)
}

// waitForIdle waits until the operator has nothing left to do and has written nothing for a second.
func (b *bench) waitForIdle(ctx context.Context) error {
	var pending float64
	var writes []audit.Request
	err := waitFor(ctx, "an idle operator", func(ctx context.Context) (bool, error) {
		m, err := b.Operator.Metrics(ctx)
		if err != nil {
			return false, err
		}
		if pending = m.Value("warren_propagation_pending_actions", nil); pending > 0 {
			return false, nil
		}
		mark, err := b.Mark(ctx)
		if err != nil {
			return false, err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return false, ctx.Err()
		}
		writes, err = b.Writes(ctx, mark)
		return len(writes) == 0, err
	})
	if err != nil {
		return fmt.Errorf("%w; %.0f keys wait, and the writes of the last second are %v", err, pending, writes[:min(len(writes), 5)])
	}
	return nil
}

// newSecret returns a Secret of one KiB that isn't a source yet.
func newSecret(name, fill string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: root, Name: name},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{"key": []byte(strings.Repeat(fill, 1024))},
	}
}

// inParallel calls do for 0 to n-1, 16 at a time, and returns the first error.
func inParallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var workers sync.WaitGroup
	next := make(chan int)
	for range 16 {
		workers.Go(func() {
			for i := range next {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

// waitFor calls done until it returns true, for ten minutes at most.
func waitFor(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	for {
		ok, err := done(ctx)
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// writeConfig sets the operator's configuration. It must be called before the operator's first start.
func (b *bench) writeConfig(text string) {
	b.OperatorConfig = "apiVersion: config.tenancy.warren.dev/v1alpha1\nkind: OperatorConfiguration\n" + text + "\n"
}
