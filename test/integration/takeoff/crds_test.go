package takeoff_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
)

var _ = Describe("make undeploy CRDS=true", Ordered, func() {
	var s site
	var saved string
	var before map[string]string

	BeforeAll(func(ctx SpecContext) {
		s = newSite(ctx, "standard")
		s.tenant(ctx, "payments")
		s.tenant(ctx, "shop")
		saved = filepath.Join(s.Dir, "saved.yaml")
	})

	It("FLT-U01b make undeploy CRDS=true saves all objects of our kinds, deletes the CRDs while the operator is up, then undeploys; "+
		"Namespaces and contents remain, but no sudo", func(ctx SpecContext) {
		before = namespaces(s.state(ctx))
		mark := s.Mark(ctx)
		// What `make undeploy CRDS=true` runs.
		s.script(ctx, "remove-crds.sh", saved)
		Expect(s.Operator.Process().Running()).To(BeTrue(), "the operator is up until the CRDs are gone")
		Eventually(s.granted).WithContext(ctx).Should(BeEmpty())
		Expect(s.undeploy(ctx)).To(ContainSubstring("What stays: its CRDs, 0 LNamespaces, 0 SubNamespaces"))

		text, err := os.ReadFile(saved)
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"name: payments\n", "name: payments-web\n", "name: shop\n", "name: shop-web\n"} {
			Expect(string(text)).To(ContainSubstring(name))
		}
		crds := &apiextensionsv1.CustomResourceDefinitionList{}
		Expect(s.Admin().List(ctx, crds)).To(Succeed())
		Expect(crds.Items).To(BeEmpty())
		Expect(namespaces(s.state(ctx))).To(HaveLen(len(before)), "all namespaces live")
		for _, name := range []string{"payments", "payments-web"} {
			own := build.ConfigMap(name, "own", "")
			Expect(s.Read(own)(ctx)).To(Succeed())
			Expect(own.Data).To(HaveKeyWithValue("key", "v"))
		}
		_, allowed := s.kubectl(ctx, "bob", "get secrets -n payments --as=bob --as-group=payments-sudoers")
		Expect(allowed).To(BeFalse(), "nobody holds sudo")
		requests, err := s.Requests(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		for _, r := range requests {
			Expect(r.Verb == "delete" && r.Resource == "namespaces" && r.Name != system).To(BeFalse(), "%s", r)
		}
	}, SpecTimeout(4*suite.Patience))

	It("FLT-U05 after make undeploy CRDS=true and make deploy, the saved objects and marks adopt restore rights and copies; Namespaces have "+
		"the same UIDs", func(ctx SpecContext) {
		// As the guide has it.
		s.deploy(ctx)
		said, allowed := s.kubectl(ctx, controlplane.Admin, "apply -f "+saved)
		Expect(allowed).To(BeTrue(), said)
		for _, tenant := range []string{"payments", "shop"} {
			uid, _ := s.kubectl(ctx, controlplane.Admin, "get lnamespace "+tenant+" -o jsonpath={.metadata.uid}")
			said, allowed := s.kubectl(ctx, controlplane.Admin, "annotate namespace "+tenant+" tenancy.warren.dev/adopt="+uid)
			Expect(allowed).To(BeTrue(), said)
		}
		for _, tenant := range []string{"payments", "shop"} {
			s.ready(ctx, tenant)
			Eventually(func() bool {
				_, allowed := s.kubectl(ctx, "alice", "get secret shared -n "+tenant+"-web")
				return allowed
			}).
				WithContext(ctx).Should(BeTrue())
			s.worksAsBefore(ctx, tenant)
			Expect(s.copied(tenant+"-web", "v")(ctx)).To(BeTrue())
		}
		Eventually(func() map[string]string { return namespaces(s.state(ctx)) }).WithContext(ctx).Should(Equal(before),
			"the same namespaces by uid, with the same keys")
	}, SpecTimeout(4*suite.Patience))

	It("FLT-U11 after the operator's rights, namespace and policies are deleted, make undeploy CRDS=true fails and says what to do: make "+
		"undeploy removes CRDs and access objects; namespaces remain", func(ctx SpecContext) {
		before = namespaces(s.state(ctx))
		for _, line := range []string{"delete clusterrolebindings warren-manager", "delete namespace " + system,
			"delete validatingadmissionpolicybindings,validatingadmissionpolicies -l app.kubernetes.io/name=warren"} {
			said, allowed := s.kubectl(ctx, controlplane.Admin, line)
			Expect(allowed).To(BeTrue(), said)
		}
		GinkgoT().Setenv("CRD_TIMEOUT", "2s")
		said, err := s.tryScript(ctx, "remove-crds.sh", saved)
		Expect(err).To(HaveOccurred(), said)
		Expect(said).To(ContainSubstring("run make undeploy, which removes the finalizers; then repeat this command"))
		s.undeploy(ctx)
		crds := &apiextensionsv1.CustomResourceDefinitionList{}
		Expect(s.Admin().List(ctx, crds)).To(Succeed())
		Expect(crds.Items).To(BeEmpty())
		Expect(s.granted(ctx)).To(BeEmpty(), "without the CRDs nobody could ever take them off")
		Expect(namespaces(s.state(ctx))).To(HaveLen(len(before)), "all namespaces live")
		s.script(ctx, "remove-crds.sh", saved)
	}, SpecTimeout(4*suite.Patience))
})

// granted are the names of the access objects.
func (s site) granted(ctx context.Context) []string {
	GinkgoHelper()
	var names []string
	for _, list := range []client.ObjectList{&rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}} {
		Expect(s.Admin().List(ctx, list, client.HasLabels{v1alpha1.LabelAccess})).To(Succeed())
		for _, object := range itemsOf(list) {
			names = append(names, object.GetName())
		}
	}
	return names
}

// namespaces are the Namespaces of a state.
func namespaces(state map[string]string) map[string]string {
	state = maps.Clone(state)
	maps.DeleteFunc(state, func(key, _ string) bool { return !strings.HasPrefix(key, "*v1.Namespace ") })
	return state
}
