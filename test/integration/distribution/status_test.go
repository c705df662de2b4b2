package distribution_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// writeStatus changes the status of the case's object as an admin.
func (f *field) writeStatus(ctx context.Context, change func(*v1alpha1.ResourceDistributionStatus)) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		rd := f.read(ctx)
		change(&rd.Status)
		return f.Admin().Status().Update(ctx, rd)
	})).To(Succeed())
}

var _ = Describe("a status", func() {
	var f *field
	BeforeEach(func(ctx SpecContext) { f = plough(ctx, world) })

	for how, write := range map[string]func(*v1alpha1.ResourceDistributionStatus){
		"wiped": func(s *v1alpha1.ResourceDistributionStatus) { *s = v1alpha1.ResourceDistributionStatus{} },
		"forged": func(s *v1alpha1.ResourceDistributionStatus) {
			s.Targets, s.Current, s.Missing, s.Conflicts = 7, 1, 5, 1
			s.Admitted, s.ResourceHash, s.DeletionPolicy = "forged", "forged", v1alpha1.DeletionOrphan
			s.ConflictingNamespaces = []v1alpha1.ConflictingNamespace{{Name: "forged", Reason: v1alpha1.ReasonUnrelated}}
			s.NotFound = []string{"forged"}
			for i := range s.Conditions {
				s.Conditions[i].Status, s.Conditions[i].Reason, s.Conditions[i].Message = metav1.ConditionFalse, "Forged", "forged"
			}
		},
	} {
		It("DIST-D76 a status that an admin wipes or forges is restored, and no copy is lost or written: "+how, func(ctx SpecContext) {
			timeless := func(rd *v1alpha1.ResourceDistribution) v1alpha1.ResourceDistributionStatus {
				for i := range rd.Status.Conditions {
					rd.Status.Conditions[i].LastTransitionTime = metav1.Time{}
				}
				return rd.Status
			}
			f.create(ctx)
			was := timeless(f.becomes(ctx, "True/Distributed"))
			f.rests(ctx)
			mark := f.Mark(ctx)
			f.writeStatus(ctx, write)
			Eventually(ctx, func() v1alpha1.ResourceDistributionStatus { return timeless(f.read(ctx)) }).Should(Equal(was), f.explain)
			f.rests(ctx)
			Expect(f.requests(ctx, mark)).NotTo(Or(HaveKey("create secrets"), HaveKey("update secrets"), HaveKey("delete secrets")))
			f.distributed(ctx, "v=1", f.d1, f.d2, f.d3)
		})
	}
})
