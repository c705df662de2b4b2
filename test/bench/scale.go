package main

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// treeSize is the size of a tree of B8: a root with ten children that have nine children each.
const treeSize = 1 + 10 + 10*9

// cold is what a cold start took.
type cold struct {
	namespaces, copies int
	took               time.Duration
	peak               float64 // bytes
	writes             int     // after a restart
}

// coldStart measures B8 for one number of trees: nothing but namespaces and sources exists when the operator starts.
func coldStart(ctx context.Context, b *bench, trees int) (cold, error) {
	if err := b.forestOf(ctx, trees); err != nil {
		return cold{}, err
	}
	c := cold{namespaces: trees * treeSize, copies: trees * (treeSize - 1) * b.scale.sources}
	o, err := b.startObserver(ctx)
	if err != nil {
		return c, err
	}
	defer o.stop()
	o.expect(watch.Added, c.copies)
	begin := time.Now()
	if _, err := b.StartOperator(ctx); err != nil {
		return c, err
	}
	if _, err := o.wait(ctx); err != nil {
		return c, err
	}
	err = waitFor(ctx, "an empty queue", func(ctx context.Context) (bool, error) {
		m, err := b.Operator.Metrics(ctx)
		return m.Value("warren_propagation_pending_actions", nil) == 0, err
	})
	if err != nil {
		return c, err
	}
	c.took = time.Since(begin)
	if c.peak, err = peakMemory(b.Operator.Process().PID()); err != nil {
		return c, err
	}
	if err := b.waitForHierarchyReports(ctx, trees*(1+10)); err != nil {
		return c, err
	}
	if err := b.waitForIdle(ctx); err != nil {
		return c, err
	}
	requests, _, err := b.requestsOfRestart(ctx)
	c.writes = len(audit.Writes(requests, controlplane.Operator))
	return c, err
}

// waitForHierarchyReports waits until as many HierarchyConfigurations as count says report that all copies are there. They do so a few
// seconds after the last copy.
func (b *bench) waitForHierarchyReports(ctx context.Context, count int) error {
	return waitFor(ctx, "reports on copies in every namespace with children", func(ctx context.Context) (bool, error) {
		list := &v1alpha1.HierarchyConfigurationList{}
		err := b.Admin().List(ctx, list)
		reports := 0
		for _, hc := range list.Items {
			if isTrue(hc.Status.Conditions, v1alpha1.ConditionPropagated) {
				reports++
			}
		}
		return reports == count, err
	})
}

// forestOf makes the namespaces and sources of B8.
func (b *bench) forestOf(ctx context.Context, trees int) error {
	return inParallel(ctx, trees, func(ctx context.Context, i int) error {
		top := fmt.Sprintf("cold-%03d", i)
		if err := b.Admin().Create(ctx, build.Root(top)); err != nil {
			return err
		}
		for j := range 10 {
			middle := fmt.Sprintf("%s-%d", top, j)
			if err := b.Admin().Create(ctx, build.Child(middle, top)); err != nil {
				return err
			}
			for k := range 9 {
				if err := b.Admin().Create(ctx, build.Child(fmt.Sprintf("%s-%d", middle, k), middle)); err != nil {
					return err
				}
			}
		}
		for j := range b.scale.sources {
			s := newSecret(fmt.Sprintf("s-%d", j), "a")
			s.Namespace, s.Labels = top, map[string]string{v1alpha1.LabelPropagate: v1alpha1.ModeUpdate}
			if err := b.Admin().Create(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakMemory is the largest resident memory that a process has had, in bytes.
func peakMemory(pid int) (float64, error) { return memoryOf(pid, highWater) }

// judgeScale makes the line of B8 out of the runs, the largest last. growth is the exponent k of time = a·namespaces^k.
func judgeScale(runs []cold) result {
	last := runs[len(runs)-1]
	r := result{id: "B8", counted: true, passed: last.took <= 600*time.Second && last.peak <= 1<<30}
	for _, c := range runs {
		r.text += fmt.Sprintf("\n   %6d namespaces %7d copies %6.1fs peak %5.0f MiB writes after a restart %d", c.namespaces, c.copies,
			c.took.Seconds(), c.peak/mebibyte, c.writes)
		r.passed = r.passed && c.writes == 0
	}
	r.text = fmt.Sprintf("cold start of %d namespaces %.0fs peak %.0f MiB growth n^%.2f budget 600s 1024 MiB", last.namespaces,
		last.took.Seconds(), last.peak/mebibyte, fitExponent(runs)) + r.text + "\n  "
	return r
}

// fitExponent fits took = a·namespaces^k by least squares of the logarithms, and returns k.
func fitExponent(runs []cold) float64 {
	var x, y, xx, xy float64
	n := float64(len(runs))
	for _, c := range runs {
		a, b := math.Log(float64(c.namespaces)), math.Log(c.took.Seconds())
		x, y, xx, xy = x+a, y+b, xx+a*a, xy+a*b
	}
	if d := n*xx - x*x; d != 0 {
		return (n*xy - x*y) / d
	}
	return math.NaN()
}
