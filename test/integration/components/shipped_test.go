package components_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/manifests"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// byDigest is an image as a careful admin names it.
const byDigest = "registry.example/warren@sha256:4bcff63911fcb4448bd4fdacec207030997caf25e9bea4045fa6c8c44de311d1"

// shipped are the manifests of every overlay, and of every component on top of standard, or of default if standard contains it already.
func shipped() map[string]devcluster.Manifests {
	GinkgoHelper()
	all := map[string]devcluster.Manifests{}
	for _, overlay := range names("overlays") {
		manifests, err := devcluster.Render("config/overlays/" + overlay)
		Expect(err).NotTo(HaveOccurred())
		all["overlay "+overlay] = manifests
	}
	for _, component := range names("components") {
		base := "config/overlays/standard"
		if component == "strict-placement" { // which overlay standard contains already
			base = "config/default"
		}
		manifests, err := devcluster.RenderWith(base, "config/components/"+component)
		Expect(err).NotTo(HaveOccurred())
		all["component "+component] = manifests
	}
	return all
}

// The golden RBAC that SEC-X6 names too is compared in package config.
var _ = Describe("SEC-X6 each overlay and component passes a server-side dry run; its pod passes level restricted; it takes an image "+
	"by digest; no policy is without binding; SEC-X6 its RBAC has no `*`, except in ClusterRole warren:impersonate-on", func() {
	It("is accepted by the API server as a whole", func(ctx SpecContext) {
		c, err := world.Client(world.Config(controlplane.Admin))
		Expect(err).NotTo(HaveOccurred())
		for name, manifests := range shipped() {
			for _, u := range manifests {
				if served(u) {
					options := []client.ApplyOption{client.FieldOwner("sec-x6"), client.ForceOwnership}
					if u.GetKind() != "Namespace" || u.GetName() == "warren-system" { // a dry run of what lies in another one needs it
						options = append(options, client.DryRunAll)
					}
					err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), options...)
					Expect(err).NotTo(HaveOccurred(), "%s: %s %s", name, u.GetKind(), u.GetName())
				}
			}
		}
	})

	It("gives the operator a pod that a restricted namespace takes", func(ctx SpecContext) {
		for name, manifests := range shipped() {
			namespace := only(manifests, "Namespace", "warren-system")
			Expect(namespace.GetLabels()).To(HaveKeyWithValue("pod-security.kubernetes.io/enforce", "restricted"), name)
			d := &appsv1.Deployment{}
			Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(only(manifests, "Deployment", "warren-controller-manager").Object, d)).
				To(Succeed())
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: "rehearsal", Labels: d.Spec.Template.Labels},
				Spec: d.Spec.Template.Spec}
			Expect(world.Admin().Create(ctx, pod, client.DryRunAll)).To(Succeed(), name)
			// The namespace refuses a pod without these security contexts, so the line above proves something.
			loose := &corev1.Pod{ObjectMeta: pod.ObjectMeta, Spec: *d.Spec.Template.Spec.DeepCopy()}
			loose.ResourceVersion, loose.UID = "", ""
			loose.Spec.SecurityContext, loose.Spec.Containers[0].SecurityContext = nil, nil
			Expect(world.Admin().Create(ctx, loose, client.DryRunAll)).To(MatchError(ContainSubstring(`violates PodSecurity "restricted`)), name)
		}
	})

	It("has no policy without a binding that denies, and no binding without a policy", func() {
		for name, all := range shipped() {
			var policies, bound []string
			for _, u := range all {
				switch u.GetKind() {
				case "ValidatingAdmissionPolicy":
					Expect(isOurs(u.GetName())).To(BeTrue(), "%s: %s", name, u.GetName())
					Expect(u.GetLabels()).To(HaveKeyWithValue("app.kubernetes.io/name", "warren"), "manager release finds it by this label")
					policies = append(policies, u.GetName())
				case "ValidatingAdmissionPolicyBinding":
					Expect(u.GetLabels()).To(HaveKeyWithValue("app.kubernetes.io/name", "warren"), "manager release finds it by this label")
					actions, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "validationActions")
					action := "Deny"
					if strings.HasPrefix(u.GetName(), manifests.HintPrefix) { // hints are no walls
						action = "Warn"
					}
					Expect(actions).To(Equal([]string{action}), "%s: %s", name, u.GetName())
					policy, _, _ := unstructured.NestedString(u.Object, "spec", "policyName")
					bound = append(bound, policy)
				}
			}
			slices.Sort(policies)
			slices.Sort(bound)
			Expect(policies).NotTo(BeEmpty(), name)
			Expect(slices.Compact(bound)).To(Equal(policies), name)
		}
	})

	It("grants no * but to people, by name", func() {
		for name, manifests := range shipped() {
			for _, u := range manifests {
				// Sudoers are bound to this role in their tree. It allows everything there, but only by the verbs of constrained impersonation.
				if !strings.HasSuffix(u.GetKind(), "Role") || u.GetName() == "warren:impersonate-on" {
					continue
				}
				rules, _, _ := unstructured.NestedSlice(u.Object, "rules")
				Expect(fmt.Sprint(rules)).NotTo(ContainSubstring("*"), "%s: %s %s", name, u.GetKind(), u.GetName())
			}
		}
	})

	It("takes an image by its digest", func(ctx SpecContext) {
		root, err := devcluster.Root()
		Expect(err).NotTo(HaveOccurred())
		for _, overlay := range names("overlays") {
			cmd := exec.CommandContext(ctx, filepath.Join(root, "hack", "render.sh"), overlay, byDigest)
			cmd.Env = os.Environ()
			text, err := cmd.Output()
			Expect(err).NotTo(HaveOccurred())
			Expect(string(text)).To(ContainSubstring("image: "+byDigest+"\n"), overlay)
			Expect(string(text)).NotTo(ContainSubstring("warren:dev"), overlay)
		}
	})
})

// served reports whether the API server knows the kind. It does not know those of other operators, for which Warren ships objects.
func served(u *unstructured.Unstructured) bool {
	group := u.GroupVersionKind().Group
	return group != "monitoring.coreos.com" && group != "cert-manager.io"
}

func only(manifests devcluster.Manifests, kind, name string) *unstructured.Unstructured {
	GinkgoHelper()
	for _, u := range manifests {
		if u.GetKind() == kind && u.GetName() == name {
			return u
		}
	}
	Fail("there is no " + kind + " " + name)
	return nil
}
