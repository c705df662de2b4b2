package components_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("component budgets", func() {
	It("QUOTA-01 a budget with -1, 1.5 pods, 17 keys or key foo is refused with one sentence that names the key; QUOTA-02 each "+
		"key that counts what the operator writes is refused, as it would keep that out; QUOTA-54 a budget that is accepted can be the "+
		"share of a namespace: the API server accepts the ResourceQuota", func(ctx SpecContext) {
		crds, err := devcluster.Render("config/crd/budgets")
		Expect(err).NotTo(HaveOccurred())
		Expect(devcluster.Apply(ctx, world.Config(controlplane.Admin), crds)).To(Succeed())
		for _, tc := range build.Budgets() {
			tenant := build.Tenant("quota-01").Object()
			tenant.Spec.Limits = &v1alpha1.Limits{Hard: tc.Hard}
			part := &v1alpha1.HierarchicalResourceQuota{Spec: v1alpha1.HierarchicalResourceQuotaSpec{Hard: tc.Hard}}
			part.Namespace, part.Name = "default", "quota-01"
			share := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "quota-54"}}
			for _, object := range []client.Object{tenant, part} {
				err := world.Admin().Create(ctx, object, client.DryRunAll)
				if tc.Refusal == "" {
					Expect(err).NotTo(HaveOccurred(), tc.Name)
					share.Spec.Hard = budget.AmountsOf(corev1.ResourceList(tc.Hard)).List()
					Expect(world.Admin().Create(ctx, share, client.DryRunAll)).To(Succeed(), tc.Name)
				} else {
					Expect(err).To(MatchError(ContainSubstring(tc.Refusal)), tc.Name)
				}
			}
		}
	})
})
