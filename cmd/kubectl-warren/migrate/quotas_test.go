package migrate

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// quotaSite is hncSite with quotas over org and team. HNC wrote a ResourceQuota in each namespace of the tree.
func quotaSite(served bool, more ...treeQuota) *site {
	s := hncSite(copies.All, hncPropagate)
	s.Quotas = treeQuotas{served: served, ours: map[Object]*v1alpha1.HierarchicalResourceQuota{}, old: map[string][]*corev1.ResourceQuota{},
		shares: map[string]*corev1.ResourceQuota{}}
	for _, namespace := range []string{"org", "team", "svc"} {
		s.Quotas.old[namespace] = []*corev1.ResourceQuota{resourceQuota(namespace, hncQuotaOfNamespace)}
	}
	estate := s.estate
	s.estate = func(c Cluster) *Estate {
		e := estate(c)
		e.TreeQuotas = append([]treeQuota{
			{treeQuotaNamed("org", "budget"), map[string]any{"pods": int64(10)}, false},
			{treeQuotaNamed("team", "few"), map[string]any{"pods": "4"}, false},
		}, more...)
		return e
	}
	return s
}

func resourceQuota(namespace, name string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")}}}
}

// enforce does one step of Warren's operator or of Kubernetes, for quotas over trees.
func (s *site) enforce() {
	for _, hrq := range s.Quotas.ours {
		if hrq.Status.ObservedGeneration == 0 {
			hrq.Status.ObservedGeneration = 1
			v1alpha1.SetCondition(&hrq.Status.Conditions, 1, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonEnforced, "")
			return
		}
	}
	s.share("org", "team", "svc")
}

// share makes or counts the share of the first of the namespaces that lacks it.
func (s *site) share(namespaces ...string) {
	for _, namespace := range namespaces {
		if share := s.Quotas.shares[namespace]; share == nil {
			s.Quotas.shares[namespace] = resourceQuota(namespace, "share")
			return
		} else if share.Status.Hard == nil {
			share.Status.Hard = share.Spec.Hard
			return
		}
	}
}

// oldCount returns how many ResourceQuotas of the peer's are left.
func (s *site) oldCount() (n int) {
	for _, old := range s.Quotas.old {
		n += len(old)
	}
	return n
}

// limited reports whether the API server limits each of the namespaces.
func (s *site) limited(namespaces ...string) bool {
	for _, namespace := range namespaces {
		if share := s.Quotas.shares[namespace]; len(s.Quotas.old[namespace]) == 0 && (share == nil || share.Status.Hard == nil) {
			return false
		}
	}
	return true
}

// migrateAtRandom does one step of the migration after the other, each drawn from its wave, and expects that all namespaces are limited at
// each moment. enforce does one step while the migration waits, and follow when nothing is planned.
func (s *site) migrateAtRandom(t *testing.T, seed uint64, enforce, follow func(), namespaces ...string) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 1000 {
		wave := (&executor{}).nextWave(s.plan().Steps)
		reason := ""
		if len(wave) == 0 || wave[0].Phase == Finish {
			reason = awaitedTreeQuota(wave, s.estate(s.Cluster), s.Cluster)
		}
		switch {
		case reason != "":
			enforce()
		case len(wave) > 0:
			s.do(t, wave[random.IntN(len(wave))])
		default:
			follow()
		}
		if !s.limited(namespaces...) {
			t.Fatalf("a namespace is without a ResourceQuota: %+v", s.Quotas)
		}
	}
}

func TestQuotasOverTrees(t *testing.T) {
	t.Run("QUOTA-36 two quotas of HNC become Warren's; at no moment a namespace is without a ResourceQuota, although each write is the last "+
		"of its run", func(t *testing.T) {
		s, seed := quotaSite(true), rand.Uint64()
		t.Logf("seed %d", seed)
		s.migrateAtRandom(t, seed, s.enforce, s.follow, "org", "team", "svc")
		if len(s.plan().Steps)+s.oldCount() > 0 || len(s.Quotas.ours) != 2 {
			t.Errorf("in the end %+v, left %+v", s.Quotas, s.plan().Steps)
		}
		budgeted := s.Quotas.ours[treeQuotaNamed("org", "budget")].Spec.Hard[corev1.ResourcePods]
		if budgeted.String() != "10" {
			t.Error(budgeted)
		}
	})
	t.Run("QUOTA-36 an undo deletes Warren's quotas, and no ResourceQuota of HNC", func(t *testing.T) {
		s := quotaSite(true)
		s.apply(t, Budgets, s.plan, 1000)
		s.apply(t, "", func() Plan {
			plan, _ := NewUndo(s.estate(s.Cluster), s.Cluster)
			return plan
		}, 1000)
		if len(s.Quotas.ours) > 0 || s.oldCount() != 3 {
			t.Errorf("%+v", s.Quotas)
		}
	})
}

func TestQuotasWithoutCounterpart(t *testing.T) {
	hard := map[string]any{"pods": "1"}
	for name, c := range map[string]struct {
		site *site
		want []string
	}{
		"without component budgets": {quotaSite(false), []string{
			"HierarchicalResourceQuota org/budget: Warren's component budgets is not installed",
			"HierarchicalResourceQuota team/few: Warren's component budgets is not installed"}},
		"with scopes": {quotaSite(true, treeQuota{treeQuotaNamed("org", "best"), hard, true}), []string{
			"HierarchicalResourceQuota org/best: it has a scopeSelector"}},
		"in no tree": {quotaSite(true, treeQuota{treeQuotaNamed("plain", "alone"), hard, false}), []string{
			"HierarchicalResourceQuota plain/alone: its namespace is in no tree"}},
	} {
		t.Run(name, func(t *testing.T) {
			var gaps []string
			for _, gap := range c.site.plan().Gaps {
				if strings.HasPrefix(gap.What, "HierarchicalResourceQuota") {
					sentence, _, _ := strings.Cut(gap.Instead, ",")
					sentence, _, _ = strings.Cut(sentence, ":")
					gaps = append(gaps, gap.What+": "+sentence)
				}
			}
			if diff := cmp.Diff(c.want, gaps); diff != "" {
				t.Error(diff)
			}
		})
	}
	s := quotaSite(true)
	s.Quotas.old["plain"] = []*corev1.ResourceQuota{resourceQuota("plain", hncQuotaOfNamespace)}
	s.apply(t, Budgets, s.plan, 1000)
	const want = "no quota of Warren limits pods there: the ResourceQuota stays, and you may delete it"
	if gaps := s.plan().Gaps; len(gaps) == 0 || gaps[len(gaps)-1] != (Gap{"ResourceQuota plain/hrq.hnc.x-k8s.io", want}) {
		t.Errorf("%+v", gaps)
	}
}
