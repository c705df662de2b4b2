package fault_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/suite"
)

// ourCRDs are the names of our CRDs.
var ourCRDs = []string{"subnamespaces", "hierarchyconfigurations", "resourcedistributions", "lnamespaces"}

// removal takes CRDs away while the operator is up, while it is down, or while it is starting.
type removal struct {
	crds []string
	when string
}

// removals are those of FLT-F26. All CRDs at once are removed in each run, each CRD alone only in long runs.
func removals() (all []removal) {
	for _, when := range []string{"up", "down", "starting"} {
		if test.IsLong() {
			for _, crd := range ourCRDs {
				all = append(all, removal{[]string{crd}, when})
			}
		}
		all = append(all, removal{ourCRDs, when})
	}
	return all
}

// populated is a tenant with a sub-namespace, a namespace that is placed in it, a copy, and a ResourceDistribution.
func populated(ctx context.Context, s *scene) {
	GinkgoHelper()
	adoptable(ctx, s)
	s.create(ctx, build.SubNamespace(s.own("payments"), s.own("web")), build.Hierarchy(s.own("legacy"), build.Below(s.own("payments"))))
	s.plant(ctx, s.bound(ctx, "payments", "web").Name)
	s.create(ctx, build.Namespace(s.own("t0"), "scene", s.key), s.distribution("1"))
	s.exist(ctx, build.Secret(s.own("t0"), "given", ""))
	for _, name := range []string{"web", "legacy"} {
		s.exist(ctx, build.ConfigMap(s.own(name), "source", ""))
	}
}

// uidsOf are the UIDs of the scene's namespaces and of the objects in them, by kind and name, and the versions of its copies.
func (s *scene) uidsOf(ctx context.Context) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	for _, object := range []client.Object{
		build.Namespace(s.own("payments")), build.Namespace(s.own("web")), build.Namespace(s.own("legacy")),
		build.ConfigMap(s.own("web"), planted, ""), build.ConfigMap(s.own("legacy"), planted, ""),
		build.ConfigMap(s.own("web"), "source", ""), build.ConfigMap(s.own("legacy"), "source", ""),
	} {
		Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		Expect(object.GetDeletionTimestamp()).To(BeNil())
		found[fmt.Sprintf("%T %s/%s", object, object.GetNamespace(), object.GetName())] = string(object.GetUID())
		if object.GetName() == "source" {
			found[object.GetNamespace()+" version"] = object.GetResourceVersion()
		}
	}
	return found
}

var _ = Describe("an operator whose CRDs are removed", Ordered, ContinueOnFailure, func() {
	var st *stage
	saved := map[string]*apiextensionsv1.CustomResourceDefinition{}

	BeforeAll(func(ctx SpecContext) {
		st = newStage(ctx, devcluster.Options{})
		for _, name := range ourCRDs {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			Expect(st.Admin().Get(ctx, keyOf(name+"."+v1alpha1.Domain), crd)).To(Succeed())
			saved[name] = crd
		}
	})

	for i, r := range removals() {
		It(fmt.Sprintf("FLT-F26 if our CRDs, all or one (`make test-long`), are deleted, they go; with lnamespaces, all rights; Namespaces "+
			"with contents stay, be the operator up, down or starting; FLT-F27 with CRDs, saved objects and marks adopt, rights return, and no "+
			"UID or copy has changed: the operator is %s, without %s", r.when,
			strings.Join(r.crds, ", ")), func(ctx SpecContext) {
			s := st.scene(fmt.Sprint("f26-", i))
			populated(ctx, s)
			before := s.uidsOf(ctx)
			objects := s.ours(ctx)

			if r.when != "up" {
				st.down()
			}
			for _, name := range r.crds {
				Expect(st.Admin().Delete(ctx, saved[name].DeepCopy())).To(Succeed())
				if r.when == "starting" && name == r.crds[0] {
					st.dead <- struct{}{}
				}
			}
			if r.when == "down" {
				st.dead <- struct{}{}
			}
			for _, name := range r.crds {
				s.gone(ctx, saved[name].DeepCopy())
			}
			if len(r.crds) > 1 || r.crds[0] == "lnamespaces" {
				Eventually(ctx, s.granted).Should(BeEmpty(), s.explain)
				s.loses(ctx, s.own("bob"))
			}
			Expect(namespacesOf(s.uidsOf(ctx))).To(Equal(namespacesOf(before)), "all namespaces live with their contents")

			for _, name := range r.crds {
				crd := saved[name].DeepCopy()
				crd.ResourceVersion, crd.UID, crd.Status = "", "", apiextensionsv1.CustomResourceDefinitionStatus{}
				Expect(st.Admin().Create(ctx, crd)).To(Succeed())
			}
			s.apply(ctx, objects)
			s.ready(ctx)
			s.bound(ctx, "payments", "web")
			s.gains(ctx, s.own("bob"))
			Eventually(ctx, func() map[string]string { return s.uidsOf(ctx) }).Should(Equal(before), "no copy was rewritten")
			s.remove(ctx, s.distribution("1"))
		}, SpecTimeout(6*suite.Patience))
	}
})

// namespacesOf are a scene's UIDs without the versions of copies.
func namespacesOf(uids map[string]string) map[string]string {
	uids = maps.Clone(uids)
	maps.DeleteFunc(uids, func(key, _ string) bool { return strings.HasSuffix(key, " version") })
	return uids
}

// ours are the scene's objects of our kinds, as a person would have saved them.
func (s *scene) ours(ctx context.Context) (all []client.Object) {
	GinkgoHelper()
	for _, object := range []client.Object{
		s.payments().Object(), build.SubNamespace(s.own("payments"), s.own("web")), build.Hierarchy(s.own("legacy")), s.distribution("1"),
	} {
		Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		object.SetResourceVersion("")
		object.SetUID("")
		object.SetFinalizers(nil)
		all = append(all, object)
	}
	return all
}

// apply makes saved objects again where they are missing, and marks the tenant's namespaces for adoption by it.
func (s *scene) apply(ctx context.Context, objects []client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		s.create(ctx, object)
	}
	uid := string(s.tenantUID(ctx))
	for _, name := range []string{"payments", "legacy"} {
		change(ctx, s, build.Namespace(s.own(name)), func(n *corev1.Namespace) {
			build.Annotated(n, v1alpha1.AnnotationAdopt, uid)
		})
	}
}

// granted are the names of the bindings that give the scene's tenant its rights.
func (s *scene) granted(ctx context.Context) (names []string, err error) {
	bindings, cluster := &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleBindingList{}
	of := client.MatchingLabels{v1alpha1.LabelTenant: s.own("payments")}
	if err := errors.Join(s.Admin().List(ctx, bindings, of), s.Admin().List(ctx, cluster, of)); err != nil {
		return nil, err
	}
	for _, b := range bindings.Items {
		names = append(names, b.Namespace+"/"+b.Name)
	}
	for _, b := range cluster.Items {
		names = append(names, b.Name)
	}
	return names, nil
}
