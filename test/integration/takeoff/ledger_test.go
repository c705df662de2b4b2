package takeoff_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
	"github.com/warren-tenancy/warren/test/words"
)

var _ = Describe("the billing ledger", func() {
	It("FLT-U24 another billing component leaves the claim of the ledger; make undeploy leaves it and its namespace, deletes all else, "+
		"and says why it stays and how to delete it", func(ctx SpecContext) {
		s := newSite(ctx, "standard")
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "warren-billing"}}
		s.deployComponent(ctx, "billing-sqlite")
		Expect(s.Read(claim)(ctx)).To(Succeed())
		made := claim.UID
		s.deployComponent(ctx, "billing-postgres")
		Expect(s.Read(claim)(ctx)).To(Succeed())
		Expect(claim.UID).To(Equal(made))

		Expect(s.undeploy(ctx)).To(ContainSubstring("namespace warren-system stays, because persistentvolumeclaim/warren-billing in it may " +
			"hold the billing ledger: kubectl delete namespace warren-system deletes both."))
		Expect(s.Read(claim)(ctx)).To(Succeed())
		Expect(claim.UID).To(Equal(made))
		Expect(claim.DeletionTimestamp).To(BeNil())
		Expect(s.leftovers(ctx)).To(ConsistOf(ContainSubstring("Namespace " + system)))
		Expect(s.ours(ctx)).To(BeEmpty())

		s.deploy(ctx)
		s.deployComponent(ctx, "billing-sqlite")
		Expect(s.Read(claim)(ctx)).To(Succeed())
		Expect(claim.UID).To(Equal(made), "the exporter gets its ledger back")
		claim.Finalizers = nil // kube-controller-manager keeps it while a pod names it
		Expect(s.Admin().Update(ctx, claim)).To(Succeed())
		Expect(s.Admin().Delete(ctx, claim)).To(Succeed())
		Eventually(s.Read(claim)).WithContext(ctx).Should(words.BeNotFound())
		Expect(s.undeploy(ctx)).To(ContainSubstring("Warren's RBAC and namespace warren-system are gone."))
		Expect(s.Read(build.Namespace(system))(ctx)).To(words.BeNotFound())
	}, SpecTimeout(4*suite.Patience))
})

// deployComponent applies the overlay with one more component, as `kubectl apply -k` does, which deletes nothing.
func (s site) deployComponent(ctx context.Context, component string) {
	GinkgoHelper()
	manifests, err := devcluster.RenderWith("config/overlays/"+s.overlay, "config/components/"+component)
	Expect(err).NotTo(HaveOccurred())
	items := []any{}
	for _, object := range manifests.Rest() {
		items = append(items, object.Object)
	}
	for _, object := range manifests {
		if object.GetName() == "warren-billing-exporter" && object.GetKind() == "Deployment" {
			items = append(items, object.Object)
		}
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(s.Dir, component+".json")
	Expect(os.WriteFile(file, text, 0o600)).To(Succeed())
	said, done := s.kubectl(ctx, controlplane.Admin, "apply -f "+file)
	Expect(done).To(BeTrue(), said)
	s.withoutWebhooks(ctx)
}

// ours are the names of the objects in the operator's namespace and in default that bear the product's label, but for claims.
func (s site) ours(ctx context.Context) (names []string) {
	GinkgoHelper()
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.ServiceAccountList{},
		&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &networkingv1.NetworkPolicyList{},
	} {
		for _, namespace := range []string{system, "default"} {
			Expect(s.Admin().List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": "warren"})).To(Succeed())
			items, err := meta.ExtractList(list)
			Expect(err).NotTo(HaveOccurred())
			for _, item := range items {
				names = append(names, item.(client.Object).GetName())
			}
		}
	}
	return names
}
