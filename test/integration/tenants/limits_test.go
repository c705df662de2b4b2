package tenants_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("what a cluster admin has set", func() {
	inBothModes("ACC-S16 policy tenant-limits refuses that a manager changes limits, template, billing, ownerReferences or finalizers; "+
		"10 s later the LNamespace is unchanged", "s16", func(ctx SpecContext, f *fixture) {
		payments := f.own("payments")
		f.settle(ctx, f.payments())
		allowed(ctx, f.as("mia"), readTenant(payments))
		before := f.get(ctx, payments)
		owner := `[{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "00000000-0000-0000-0000-000000000000"}]`
		for patch, field := range map[string]string{
			`{"spec": {"limits": {"subNamespaces": 1000}}}`:             "spec.limits",
			`{"spec": {"template": "base"}}`:                            "spec.template",
			`{"spec": {"billing": {"costCenter": "1"}}}`:                "spec.billing",
			fmt.Sprintf(`{"metadata": {"ownerReferences": %s}}`, owner): "owners and finalizers",
			`{"metadata": {"finalizers": ["example.com/held"]}}`:        "owners and finalizers",
			`{"metadata": {"finalizers": null}}`:                        "owners and finalizers",
		} {
			err := f.as("mia").Patch(ctx, build.Tenant(payments).Object(), client.RawPatch(types.MergePatchType, []byte(patch)))
			Expect(err).To(And(beDenied(), MatchError(ContainSubstring("'warren-tenant-limits'")), MatchError(ContainSubstring(field))), patch)
		}
		Consistently(func(g Gomega) {
			now := f.get(ctx, payments) // whose status the operator may still write
			g.Expect([]any{now.Generation, now.OwnerReferences, now.Finalizers, now.Spec}).
				To(Equal([]any{before.Generation, before.OwnerReferences, before.Finalizers, before.Spec}))
		}).WithContext(ctx).WithTimeout(test.Quiet(10 * time.Second)).Should(Succeed())
		allowed(ctx, f.as("alice"), podsIn(payments))
	})
})
