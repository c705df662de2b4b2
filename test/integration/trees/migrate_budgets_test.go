package trees_test

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
)

// The quotas of Capsule over a Tenant, with component budgets. Tenant c-gas has one too: it gets its LNamespace in the last step only.
var _ = Describe("kubectl warren migrate capsule with component budgets", Ordered, func() {
	var s *migration
	var before map[string]*metav1.PartialObjectMetadata
	all := []string{"c-oil-dev", "c-oil-prod", "c-gas", "c-gas-lab"}

	// find returns a ResourceQuota, or nil.
	find := func(ctx context.Context, namespace, name string) *corev1.ResourceQuota {
		GinkgoHelper()
		q := &corev1.ResourceQuota{}
		err := s.Admin().Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, q)
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		if err != nil {
			return nil
		}
		return q
	}
	old := func(ctx context.Context, namespace string) *corev1.ResourceQuota {
		return find(ctx, namespace, "capsule-"+namespace[:5]+"-0")
	}
	// pursue is that of migration. After each run, Kubernetes counts the pods of each namespace.
	pursue := func(ctx context.Context, flag string) {
		GinkgoHelper()
		for range 80 {
			code := s.severed(ctx, 1, s.args(flag, "--yes")...)
			Expect(code).NotTo(Equal(1), "%s gave up", flag)
			for _, namespace := range all {
				if old(ctx, namespace) != nil {
					continue
				}
				share := find(ctx, namespace, budget.QuotaName)
				Expect(share).NotTo(BeNil(), namespace)
				Expect(share.Status.Hard).To(HaveKey(corev1.ResourcePods), namespace)
			}
			if code == 0 {
				return
			}
		}
		Fail("it never ends")
	}
	budgetOf := func(ctx context.Context, tenant string) v1alpha1.Budget {
		GinkgoHelper()
		lns := build.Tenant(tenant).Object()
		Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(lns), lns)).To(Succeed())
		Expect(lns.Spec.Limits).NotTo(BeNil())
		return lns.Spec.Limits.Hard
	}

	BeforeAll(func(ctx SpecContext) {
		own := startWorld(ctx, devcluster.Options{Webhooks: true, Components: []string{"config/components/budgets"},
			Operator: devcluster.OperatorOptions{Config: migrating}})
		config := filepath.Join(GinkgoT().TempDir(), "config.yaml")
		Expect(os.WriteFile(config, []byte(migrating), 0o600)).To(Succeed())
		s = own.fill(ctx, "capsule", config, bindingKind, quotaKind)
		s.furnish(ctx)
		gas := s.object(ctx, tenantKind, "", "c-gas")
		Expect(unstructured.SetNestedSlice(gas.Object, []any{map[string]any{"hard": map[string]any{"pods": "6"}}},
			"spec", "resourceQuotas", "items")).To(Succeed())
		Expect(s.Admin().Update(ctx, gas)).To(Succeed())
		s.replicate(ctx, quotaKind, "c-gas", "capsule-c-gas-0", "resource-quota",
			map[string]any{"spec": map[string]any{"hard": map[string]any{"pods": "6"}}}, "c-gas", "c-gas-lab")
		before = s.state(ctx, "c-")
	})

	It("MIG-C8 --apply, killed after each write and repeated, makes the budget and deletes no ResourceQuota of Capsule; "+
		"--undo removes the budget", Label("slow"), func(ctx SpecContext) {
		pursue(ctx, "--apply")
		Expect(budgetOf(ctx, "c-oil")).To(Equal(v1alpha1.Budget{corev1.ResourcePods: resource.MustParse("10")}))
		s.keeps(ctx, before)
		pursue(ctx, "--undo")
		Eventually(func() map[string]map[string]string { return metadataOf(s.state(ctx, "c-")) }).WithContext(ctx).
			Should(Equal(metadataOf(before)), "the shares are gone, too")
		Expect(uidsOf(s.state(ctx, "c-"))).To(Equal(uidsOf(before)))
	})

	It("MIG-C8 --finish deletes Capsule's ResourceQuotas for the whole of a Tenant once Kubernetes has counted Warren's, "+
		"although each write is the last of its run", Label("slow"), func(ctx SpecContext) {
		pursue(ctx, "--apply")
		pursue(ctx, "--finish")
		for _, namespace := range all {
			Expect(old(ctx, namespace)).To(BeNil(), namespace)
		}
		for tenant, pods := range map[string]string{"c-oil": "10", "c-gas": "6"} {
			Expect(budgetOf(ctx, tenant)).To(Equal(v1alpha1.Budget{corev1.ResourcePods: resource.MustParse(pods)}))
		}
		plan := s.planned(ctx)
		Expect(plan.Steps).To(BeEmpty())
		for _, gap := range plan.Gaps {
			Expect(gap.What).NotTo(ContainSubstring("Quota"), gap.Instead)
		}
		s.isHealthy(ctx)
	})
})
