package distribute

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Rollout determines in what order existing copies are updated, and how many at a time.
type Rollout struct {
	partition, batch *intstr.IntOrString
	interval         time.Duration
	first            labels.Selector
}

func readRollout(spec v1alpha1.DistributionRollout) (Rollout, error) {
	r := Rollout{partition: spec.Partition, batch: spec.BatchSize, interval: secondsOf(spec.Interval), first: labels.Nothing()}
	if spec.First != nil {
		var err error
		if r.first, err = metav1.LabelSelectorAsSelector(spec.First); err != nil {
			return r, fmt.Errorf("spec.rollout.first: %w", err)
		}
	}
	for _, one := range []*intstr.IntOrString{r.partition, r.batch} {
		if one != nil {
			if _, err := intstr.GetScaledValueFromIntOrPercent(one, 100, true); err != nil {
				return r, fmt.Errorf("spec.rollout: %w", err)
			}
		}
	}
	return r, nil
}

// Batched reports whether updates are made in batches with pauses between them.
func (r Rollout) Batched() bool { return r.batch != nil && r.interval > 0 }

// Interval is the pause between batches.
func (r Rollout) Interval() time.Duration { return r.interval }

// Order sorts namespaces as they are updated: first those that match spec.rollout.first, and each group by name.
func (r Rollout) Order(f *forest.Snapshot, namespaces []string) {
	early := make(map[string]bool, len(namespaces))
	for _, name := range namespaces {
		early[name] = r.first.Matches(labels.Set(f.SelectableLabels(name)))
	}
	slices.SortFunc(namespaces, func(a, b string) int {
		if early[a] != early[b] {
			if early[a] {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})
}

// Open returns the outdated copies, in their order, without the last ones, which the partition holds back. copies is the number of all
// existing copies.
func (r Rollout) Open(outdated []string, copies int) []string {
	return outdated[:max(0, len(outdated)-scaleValue(r.partition, copies, 0))]
}

// Batch returns how many copies one batch updates, at least 1. copies is the number of all existing copies.
func (r Rollout) Batch(copies int) int { return max(1, scaleValue(r.batch, copies, copies)) }

// scaleValue returns value as a number. A percentage is taken of all, and rounded up. If value is nil or invalid, it returns otherwise.
func scaleValue(value *intstr.IntOrString, all, otherwise int) int {
	if value == nil {
		return otherwise
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(value, all, true)
	if err != nil {
		return otherwise
	}
	return max(0, n)
}
