package migrate

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/configfile"
)

// budgetedCapsuleSite is capsuleSite with component budgets, and with the ResourceQuotas that Capsule wrote for Tenant oil.
func budgetedCapsuleSite() *site {
	s := capsuleSite()
	s.Quotas = treeQuotas{served: true, old: map[string][]*corev1.ResourceQuota{}, shares: map[string]*corev1.ResourceQuota{}}
	for _, namespace := range []string{"oil-dev", "oil-prod"} {
		s.Quotas.old[namespace] = []*corev1.ResourceQuota{capsuleQuotaIn(namespace, capsuleQuota, "0")}
	}
	return s
}

func capsuleQuotaIn(namespace, label, value string) *corev1.ResourceQuota {
	q := resourceQuota(namespace, "capsule-"+value)
	q.Labels = map[string]string{label: value}
	return q
}

// enforceTenants does one step of Warren's operator or of Kubernetes, for the budgets of LNamespaces.
func (s *site) enforceTenants() {
	for _, lns := range s.LNamespaces {
		if lns.Spec.Limits != nil && len(lns.Spec.Limits.Hard) > 0 && len(lns.Status.Conditions) == 0 {
			v1alpha1.SetCondition(&lns.Status.Conditions, 0, v1alpha1.ConditionBudgetEnforced, metav1.ConditionTrue, v1alpha1.ReasonEnforced, "")
			return
		}
	}
	s.share("oil-dev", "oil-prod")
}

func TestQuotasOfTenants(t *testing.T) {
	t.Run("MIG-C8 the quotas of a Tenant become its budget; at no moment a namespace is without a ResourceQuota, although each write is "+
		"the last of its run", func(t *testing.T) {
		s, seed := budgetedCapsuleSite(), rand.Uint64()
		t.Logf("seed %d", seed)
		s.migrateAtRandom(t, seed, s.enforceTenants, s.followCapsule, "oil-dev", "oil-prod")
		if pods := s.LNamespaces["oil"].Spec.Limits.Hard[corev1.ResourcePods]; pods.String() != "9" || len(s.plan().Steps)+s.oldCount() > 0 {
			t.Errorf("in the end %s pods, %+v, left %+v", pods.String(), s.Quotas, s.plan().Steps)
		}
	})
	t.Run("MIG-C8 an undo deletes the LNamespaces with their budgets, and no ResourceQuota of Capsule", func(t *testing.T) {
		s := budgetedCapsuleSite()
		s.apply(t, Budgets, s.plan, 1000)
		if s.LNamespaces["oil"].Spec.Limits.Hard == nil {
			t.Errorf("%+v", s.LNamespaces["oil"].Spec)
		}
		s.apply(t, "", func() Plan { plan, _ := NewUndo(s.estate(s.Cluster), s.Cluster); return plan }, 1000)
		if len(s.LNamespaces) > 0 || s.oldCount() != 2 {
			t.Errorf("%+v %+v", s.LNamespaces, s.Quotas.old)
		}
	})
}

func hardOf(pairs ...string) map[string]any {
	hard := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		hard[pairs[i]] = pairs[i+1]
	}
	return map[string]any{"hard": hard}
}

// pool returns a ResourcePool or GlobalResourceQuota over namespaces.
func pool(kind, name string, quota map[string]any, namespaces ...any) unstructured.Unstructured {
	u := unstructured.Unstructured{Object: map[string]any{"kind": kind, "spec": map[string]any{"quota": quota},
		"status": map[string]any{"namespaces": namespaces}}}
	u.SetName(name)
	return u
}

func TestBudgetOfTenant(t *testing.T) {
	scoped, many := hardOf("pods", "5"), hardOf()
	scoped["scopes"] = []any{"Terminating"}
	for i := range 16 {
		many["hard"].(map[string]any)[fmt.Sprintf("count/kind%d.example.com", i)] = "1"
	}
	withDefaults := pool("ResourcePool", "p", hardOf("pods", "5"), "oil-dev", "oil-prod")
	withDefaults.Object["spec"].(map[string]any)["defaults"] = map[string]any{"pods": "1"}
	for name, c := range map[string]struct {
		scope  string
		items  []any
		others []unstructured.Unstructured
		change func(*site)
		// merges reports that the case is MIG-C9.
		merges bool
		// hard is the budget, kept are the ResourceQuotas in oil-dev that stay, gaps are how the gaps begin.
		hard map[corev1.ResourceName]string
		kept []string
		gaps []string
	}{
		"items": {merges: true, items: []any{hardOf("pods", "10", "requests.cpu", "4"), hardOf("pods", "9")},
			hard: map[corev1.ResourceName]string{"pods": "9", "requests.cpu": "4"}, kept: []string{"capsule-p"}},
		"pools": {merges: true, items: []any{hardOf("pods", "10")}, others: []unstructured.Unstructured{
			pool("ResourcePool", "p", hardOf("pods", "8"), "oil-prod", "oil-dev", "deleted"),
			pool("GlobalResourceQuota", "g", hardOf("requests.memory", "1Gi"), "oil-dev", "oil-prod")},
			hard: map[corev1.ResourceName]string{"pods": "8", "requests.memory": "1Gi"}, kept: []string{"capsule-1"}},
		"scope Namespace": {scope: "Namespace", items: []any{hardOf("pods", "10")},
			kept: []string{"capsule-0", "capsule-1", "capsule-p"}, gaps: []string{"resourceQuotas.items of Tenant oil: " + inATemplate}},
		"scopes": {items: []any{scoped, hardOf("pods", "9")}, hard: map[corev1.ResourceName]string{"pods": "9"},
			kept: []string{"capsule-0", "capsule-p"}, gaps: []string{"resourceQuotas.items[0] of Tenant oil: it has scopes"}},
		"a refused resource": {items: []any{hardOf("count/resourcequotas", "3", "pods", "1")},
			kept: []string{"capsule-0", "capsule-1", "capsule-p"},
			gaps: []string{"resourceQuotas.items[0] of Tenant oil: spec.limits.hard can't be the same, count/resourcequotas: would keep out"}},
		"too many resources": {items: []any{hardOf("pods", "1"), many}, hard: map[corev1.ResourceName]string{"pods": "1"},
			kept: []string{"capsule-1", "capsule-p"},
			gaps: []string{"resourceQuotas.items[1] of Tenant oil: spec.limits.hard can't be the same, must have at most 16 keys: it has 17"}},
		"a pool over a part of a Tenant": {others: []unstructured.Unstructured{
			pool("ResourcePool", "p", hardOf("pods", "8"), "oil-dev")},
			kept: []string{"capsule-0", "capsule-1", "capsule-p"},
			gaps: []string{"ResourcePool p: its ResourceQuotas keep what was claimed, and can't grow. Its namespaces are not all"}},
		"a pool with defaults": {others: []unstructured.Unstructured{withDefaults},
			kept: []string{"capsule-0", "capsule-1", "capsule-p"}, gaps: []string{"ResourcePool p: its spec.defaults give each namespace pods"}},
		"component budgets is not installed": {items: []any{hardOf("pods", "9")}, change: func(s *site) { s.Quotas.served = false },
			kept: []string{"capsule-0", "capsule-1", "capsule-p"},
			gaps: []string{"resourceQuotas.items[0] of Tenant oil: Warren's component budgets is not installed"}},
		"an LNamespace without it": {items: []any{hardOf("pods", "9")}, change: func(s *site) {
			s.LNamespaces["oil"] = lnamespaceBy("oil", "")
		}, kept: []string{"capsule-0", "capsule-1", "capsule-p"}, gaps: []string{
			"resourceQuotas.items[0] of Tenant oil: LNamespace oil exists, and its spec.limits.hard lacks pods: 9", "LNamespace oil: it exists"}},
		"an LNamespace with another amount keeps it": {merges: true, items: []any{hardOf("pods", "9")}, change: func(s *site) {
			s.LNamespaces["oil"] = lnamespaceBy("oil", "")
			s.LNamespaces["oil"].Spec.Limits = &v1alpha1.Limits{Hard: v1alpha1.Budget{"pods": resource.MustParse("20")}}
		}, hard: map[corev1.ResourceName]string{"pods": "20"}, kept: []string{"capsule-1", "capsule-p"},
			gaps: []string{"LNamespace oil: it exists"}},
	} {
		test := func(t *testing.T) {
			s := budgetedCapsuleSite()
			s.Quotas.old["oil-dev"] = []*corev1.ResourceQuota{capsuleQuotaIn("oil-dev", capsuleQuota, "0"),
				capsuleQuotaIn("oil-dev", capsuleQuota, "1"), capsuleQuotaIn("oil-dev", capsulePool, "p")}
			if c.change != nil {
				c.change(s)
			}
			oil := tenantObject("oil", map[string]any{"resourceQuotas": map[string]any{"scope": c.scope, "items": c.items}})
			e := EstateOfCapsule(Capsule{Tenants: []unstructured.Unstructured{oil}, Others: c.others}, s.Cluster,
				ourRules{configfile.Default(), "warren-system"})
			var hard map[corev1.ResourceName]string
			if limits := e.Tenants["oil"].Limits; limits != nil {
				hard = map[corev1.ResourceName]string{}
				for key, amount := range limits.Hard {
					hard[key] = amount.String()
				}
			}
			if diff := cmp.Diff(c.hard, hard); diff != "" {
				t.Errorf("budget (-want +got):\n%s", diff)
			}
			var kept []string
			for _, q := range s.Quotas.old["oil-dev"] {
				if e.KeptQuotas[objectOfQuota(q)] {
					kept = append(kept, q.Name)
				}
			}
			if diff := cmp.Diff(c.kept, kept); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			gaps := e.Gaps[1:] // after that about the deletion of a Tenant
			if len(gaps) != len(c.gaps) {
				t.Fatalf("gaps: %v", gaps)
			}
			for i, want := range c.gaps {
				if got := gaps[i].What + ": " + gaps[i].Instead; !strings.HasPrefix(got, want) {
					t.Errorf("gap %q, want %q", got, want)
				}
			}
		}
		if c.merges {
			t.Run("MIG-C9 of several quotas over exactly the namespaces of a Tenant, the smallest amount of each resource is its budget; "+
				"an existing LNamespace keeps its own: "+name, test)
		} else {
			t.Run("MIG-C10 the plan names each quota that Warren can't take over, and why; its ResourceQuotas stay: "+name, test)
		}
	}
}
