package tenants_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

// Cases of the checks before an object is stored. Every request is a dry run.

func try(ctx context.Context, f *fixture, tenant *build.LNamespace) error {
	return f.Admin().Create(ctx, tenant.Object(), client.DryRunAll)
}

func refused(ctx context.Context, f *fixture, tenant *build.LNamespace, message string) {
	GinkgoHelper()
	err := try(ctx, f, tenant)
	Expect(err).To(MatchError(apierrors.IsInvalid, "is a 422"))
	Expect(err).To(MatchError(ContainSubstring(message)))
}

// inAnyList makes three tenants that list the subject as user, manager and sudoer.
func inAnyList(f *fixture, subject v1alpha1.Subject) []*build.LNamespace {
	tenant := func() *build.LNamespace { return build.Tenant(f.own("payments")) }
	return []*build.LNamespace{tenant().UserSubjects(subject), tenant().ManagerSubjects(subject), tenant().SudoerSubjects(subject)}
}

// refusesName matches a refusal of metadata.name that ends so. Kubernetes 1.34 writes the type of the value before the value.
func refusesName(end string) types.GomegaMatcher {
	return And(ContainSubstring("is invalid: metadata.name: Invalid value: "), HaveSuffix(end))
}

var _ = Describe("an LNamespace that is refused", func() {
	It("ACC-V01 without webhooks, a name that is no DNS label of at most 63 characters is refused, as are default and kube-x; one of 63 "+
		"letters is allowed", func(ctx SpecContext) {
		f := of(world, "v01")
		const label = "DNS label of at most 63"
		refused(ctx, f, build.Tenant("v01.b"), label)
		refused(ctx, f, build.Tenant("v01-"+strings.Repeat("a", 60)), label)
		Expect(try(ctx, f, build.Tenant("v01-"+strings.Repeat("a", 59)))).To(Succeed())
		for _, name := range []string{"default", "kube-x"} {
			refused(ctx, f, build.Tenant(name), "default and kube-* are reserved names")
		}
	})

	It("ACC-V11 without webhooks, names kube-x, my.tenant and of 64 letters are refused with field metadata.name, value, rule and next "+
		"step", func(ctx SpecContext) {
		f, long := of(world, "v11"), "v11-"+strings.Repeat("a", 60)
		for name, why := range map[string]string{
			"kube-x": `default and kube-* are reserved names: choose another`,
			"my.tenant": `an LNamespace name is a DNS label of at most 63 characters: use lowercase letters, digits and -, with a letter or digit ` +
				`at both ends`,
		} {
			Expect(try(ctx, f, build.Tenant(name))).To(MatchError(refusesName(`"` + name + `": ` + why)))
		}
		Expect(try(ctx, f, build.Tenant(long))).To(MatchError(refusesName(
			`"` + long + `" is too long: an LNamespace name is a DNS label of at most 63 characters; choose a shorter one`)))
	})

	It("ACC-V03 without webhooks, istio-system gets ReservedName and no Namespace, the operator's namespace NamespaceConflict; neither "+
		"LNamespace has a sudo or edit pair", func(ctx SpecContext) {
		f := of(world, "v03")
		for _, name := range []string{"istio-system", "warren-system"} {
			f.create(ctx, build.Tenant(name).Users(f.own("alice")).Sudoers(f.own("bob")).Object())
		}
		f.says(ctx, "istio-system", v1alpha1.ConditionNamespaceReady, metav1.ConditionFalse, v1alpha1.ReasonReservedName)
		Expect(f.Read(build.Namespace("istio-system"))(ctx)).To(beNotFound())
		f.says(ctx, "warren-system", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNamespaceConflict)
		for _, name := range []string{"istio-system", "warren-system"} {
			f.Gone(ctx, append(pair("warren:sudo:"+name), pair("warren:edit:"+name)...)...)
			Expect(f.Admin().Delete(ctx, build.Tenant(name).Object())).To(Succeed())
		}
	})

	It("ACC-V04 in any list, Group x-sudoers and system:masters, User system:serviceaccount:ci:d and warren:sudo:shop are refused with "+
		"the messages of 2.1; User foo-sudoers is allowed", func(ctx SpecContext) {
		f := of(world, "v04")
		for _, c := range []struct {
			subject v1alpha1.Subject
			message string
		}{
			{build.Group("x-sudoers"), "group names that end in -sudoers are reserved"},
			{build.Group("system:masters"),
				"names that start with system: are reserved; a service account is kind ServiceAccount with namespace and name"},
			{build.Users("system:serviceaccount:ci:d")[0], "names that start with system: are reserved; a service account is kind ServiceAccount " +
				"with namespace and name"},
			{build.Users("warren:sudo:shop")[0], "user names that start with warren: are reserved"},
		} {
			for _, tenant := range inAnyList(f, c.subject) {
				refused(ctx, f, tenant, c.message)
			}
		}
		for _, tenant := range inAnyList(f, build.Users("foo-sudoers")[0]) {
			Expect(try(ctx, f, tenant)).To(Succeed())
		}
	})

	It("ACC-V05 in any list, a ServiceAccount without namespace, with a whole user name, or of kube-system is refused, as is a User with "+
		"a namespace", func(ctx SpecContext) {
		f := of(world, "v05")
		const namespace = "namespace is required for a ServiceAccount and forbidden for a User or Group"
		for _, c := range []struct {
			subject v1alpha1.Subject
			message string
		}{
			{build.ServiceAccount("", "d"), namespace},
			{v1alpha1.Subject{Kind: v1alpha1.SubjectUser, Namespace: "x", Name: "bob"}, namespace},
			{build.ServiceAccount("ci", "system:serviceaccount:ci:d"), "a ServiceAccount name is a DNS subdomain"},
			{build.ServiceAccount("kube-system", "x"), "service accounts of kube-* can't be listed"},
		} {
			for _, tenant := range inAnyList(f, c.subject) {
				refused(ctx, f, tenant, c.message)
			}
		}
	})

	It("ACC-V06 the same User twice and 513 users are refused; a User and a Group of one name, and 512 users of 256 characters, are "+
		"allowed", func(ctx SpecContext) {
		f := of(world, "v06")
		tenant := func() *build.LNamespace { return build.Tenant(f.own("payments")) }
		refused(ctx, f, tenant().Users("x", "x"), "Duplicate value")
		Expect(try(ctx, f, tenant().Users("x").UserSubjects(build.Group("x")))).To(Succeed())
		long := func(count int) *build.LNamespace {
			t := tenant()
			for n := range count {
				t.Users(fmt.Sprintf("%0256d", n))
			}
			return t
		}
		Expect(try(ctx, f, long(512))).To(Succeed())
		refused(ctx, f, long(513), "must have at most 512 items")
	})

	It("ACC-V07 in any list, names that are empty, *, too long, or have a space in front or a line break are refused; Zoë Müller and "+
		"https://acc/1#2%3 are allowed", func(ctx SpecContext) {
		f := of(world, "v07")
		for _, name := range []string{"", " bob", "b\nb", "*", strings.Repeat("x", 257)} {
			for _, tenant := range inAnyList(f, build.Users(name)[0]) {
				Expect(try(ctx, f, tenant)).To(MatchError(apierrors.IsInvalid, "is a 422"), "%q", name)
			}
		}
		for _, name := range []string{"Zoë Müller", "https://acc/1#2%3"} {
			for _, tenant := range inAnyList(f, build.Users(name)[0]) {
				Expect(try(ctx, f, tenant)).To(Succeed(), "%q", name)
			}
		}
	})

	It("ACC-V08 kubectl refuses to apply the unknown field spec.sudoer", func(ctx SpecContext) {
		f := of(world, "v08")
		_, stderr, code := f.KubectlWith(ctx, "admin", `
apiVersion: tenancy.warren.dev/v1alpha1
kind: LNamespace
metadata: {name: v08-payments}
spec: {sudoer: [{kind: User, name: bob}]}
`, "apply", "-f", "-")
		Expect(code).NotTo(BeZero())
		Expect(stderr).To(ContainSubstring("unknown field"))
		f.Gone(ctx, build.Tenant(f.own("payments")).Object())
	})
})

var _ = Describe("an LNamespace that is written", func() {
	It("ACC-V10 billing.labels may have 16 keys of 64 characters with values of 256; a key of 65 or a value of 257 is "+
		"refused", func(ctx SpecContext) {
		f := of(world, "v10")
		labelled := func(key, value int) *build.LNamespace {
			tenant, labels := build.Tenant(f.own("payments")), map[string]string{}
			for i := range 16 {
				labels[fmt.Sprintf("%02d", i)+strings.Repeat("k", key-2)] = strings.Repeat("v", value)
			}
			tenant.Spec.Billing = &v1alpha1.Billing{Labels: labels}
			return tenant
		}
		Expect(try(ctx, f, labelled(64, 256))).To(Succeed())
		refused(ctx, f, labelled(65, 256), "keys may have at most 64 characters, values 256")
		refused(ctx, f, labelled(64, 257), "keys may have at most 64 characters, values 256")
	})

	It("ACC-V09 two field managers apply different users with server-side apply, and the list has both", func(ctx SpecContext) {
		f := of(world, "v09")
		for _, user := range []string{"alice", "dave"} {
			tenant := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": v1alpha1.GroupVersion.String(), "kind": "LNamespace",
				"metadata": map[string]any{"name": f.own("payments")},
				"spec":     map[string]any{"users": []any{map[string]any{"kind": "User", "name": f.own(user)}}},
			}}
			Expect(f.Admin().Apply(ctx, client.ApplyConfigurationFromUnstructured(tenant), client.FieldOwner("of-"+user))).To(Succeed())
		}
		Expect(f.get(ctx, f.own("payments")).Spec.Users).To(ConsistOf(build.Users(f.own("alice"), f.own("dave"))))
		f.ready(ctx, f.own("payments"))
		allowed(ctx, f.as("alice"), podsIn(f.own("payments")))
		allowed(ctx, f.as("dave"), podsIn(f.own("payments")))
	})

	It("ACC-W07 without webhooks and lists, the Namespace exists and AccessReady is True; the tenant's group of sudoers is the only "+
		"subject of its access objects", func(ctx SpecContext) {
		f := of(world, "w07")
		f.settle(ctx, build.Tenant(f.own("payments")))
		f.says(ctx, f.own("payments"), v1alpha1.ConditionAccessReady, metav1.ConditionTrue, v1alpha1.ReasonGranted)
		f.Exists(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.own("payments")}})
		group := build.RBACGroup(f.own("payments-sudoers"))
		Expect(f.accessSubjects(ctx, f.own("payments"))).To(ConsistOf(group), "of warren:sudoers, and nobody else")
	})
})
