package budget

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
)

// plant returns the operator of one tree: root org, and below it namespaces beside each other, or in a chain.
func plant(namespaces int, chain bool) *Reconciler {
	r := New(Options{View: view.New(forest.Rules{})})
	r.sinkOfLimits().Replace("", "1", nil)
	parent := ""
	for n := range namespaces + 1 {
		name, labels := fmt.Sprintf("ns-%04d", n), map[string]string{v1alpha1.LabelParent: parent}
		if n == 0 {
			name, labels = "org", map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}
		}
		r.View.Observe(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "1",
			Labels: labels}})
		if n == 0 || chain {
			parent = name
		}
	}
	return r
}

// fill gives each namespace HierarchicalResourceQuotas of some resources each.
func (r *Reconciler) fill(quotas, keys int) {
	version := 1
	for name := range r.View.Snapshot().All() {
		for q := range quotas {
			version++
			limit := limitOf(name, fmt.Sprint("q", q), "1", fmt.Sprint(version))
			limit.Spec.Hard = v1alpha1.Budget{}
			for k := range keys {
				limit.Spec.Hard[corev1.ResourceName(fmt.Sprintf("count/widgets%d-%d.%s.example.com", q, k, name))] = resource.MustParse("9")
			}
			r.sinkOfLimits().Put(limit)
		}
	}
}

func TestWhatATreeAsksForIsBounded(t *testing.T) {
	t.Run("QUOTA-59 the limits above a namespace have at most 64 resources together, the nearest to the root first; others are LimitExceeded",
		func(t *testing.T) {
			r := plant(20, true)
			r.fill(1, 16)
			gathered := r.gatherTree(r.View.Snapshot(), "org", time.Now())
			for _, share := range budget.Plan(gathered.limits, gathered.rows, nil, time.Now()) {
				if len(share.Hard) > 64 {
					t.Errorf("%s has a share of %d resources", share.Namespace, len(share.Hard))
				}
			}
			if len(gathered.quotas) != 21 {
				t.Errorf("%d HierarchicalResourceQuotas are reported on, want 21", len(gathered.quotas))
			}
			for l, of := range gathered.quotas {
				v := gathered.judge(l, budget.Sum{}, state{kind: installed})
				counts := of.Namespace == "org" || of.Namespace <= "ns-0003"
				if exceeded := v.reason == v1alpha1.ReasonLimitExceeded && strings.Contains(v.message, "64 resources"); exceeded == counts {
					t.Errorf("%s: %s: %s", of.Namespace, v.reason, v.message)
				}
			}
		})
	t.Run("QUOTA-60 the HierarchicalResourceQuotas of a tree have at most 4096 resources together; below others rights don't wait for a share",
		func(t *testing.T) {
			r := plant(100, false)
			r.fill(4, 16)
			for q := range 4 {
				r.sinkOfLimits().Gone(limitOf("org", fmt.Sprint("q", q), "1", fmt.Sprint(1000+q)))
			}
			gathered := r.gatherTree(r.View.Snapshot(), "org", time.Now())
			if len(gathered.ignored) != 4*36 || gathered.keys != 4096 {
				t.Errorf("%d are ignored, %d resources count", len(gathered.ignored), gathered.keys)
			}
			if r.AwaitsShare("ns-0100") || !r.AwaitsShare("ns-0001") {
				t.Error("rights wait where no limit counts, or don't wait where one does")
			}
		})
}

func TestALimitThatCannotBeWrittenHindersNoOther(t *testing.T) {
	t.Run("QUOTA-55 a resource that no ResourceQuota can limit is left out of all shares, and its HierarchicalResourceQuota "+
		"says so", func(t *testing.T) {
		r := plant(1, false)
		limit := limitOf("org", "bad", "1", "2")
		limit.Spec.Hard = v1alpha1.Budget{"example.com/memory": resource.MustParse("8E")}
		r.sinkOfLimits().Put(limit)
		gathered := r.gatherTree(r.View.Snapshot(), "org", time.Now())
		v := gathered.judge(0, budget.Sum{}, state{kind: installed})
		if v.reason != v1alpha1.ReasonNotCounted || !strings.HasPrefix(v.message, "example.com/memory: ") {
			t.Errorf("%s: %s", v.reason, v.message)
		}
		if r.AwaitsShare("ns-0001") {
			t.Error("rights wait for a share that never comes")
		}
		limit = limit.DeepCopy()
		limit.Spec.Hard["pods"], limit.ResourceVersion = resource.MustParse("5"), "3"
		r.sinkOfLimits().Put(limit)
		gathered = r.gatherTree(r.View.Snapshot(), "org", time.Now())
		for _, share := range budget.Plan(gathered.limits, gathered.rows, nil, time.Now()) {
			if _, limited := share.Hard["pods"]; !limited || len(share.Hard) != 1 {
				t.Errorf("%s: %v", share.Namespace, share.Hard)
			}
		}
		if !r.AwaitsShare("ns-0001") {
			t.Error("rights don't wait for a share that comes")
		}
	})
}

// A whole pass but its writes, in the tree that asks for most: at most 100 ms.
func BenchmarkPassOfATreeThatAsksForMost(b *testing.B) {
	r := plant(2000, false)
	r.fill(4, 16)
	for b.Loop() {
		t := r.gatherTree(r.View.Snapshot(), "org", time.Now())
		budget.Plan(t.limits, t.rows, t.refusals, time.Now())
		for l, used := range budget.SumUsed(t.limits, t.rows) {
			t.judge(l, used, state{kind: installed})
		}
	}
}
