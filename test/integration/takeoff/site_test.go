package takeoff_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/words"
)

const (
	system     = "warren-system"
	deployment = "warren-controller-manager"
	// podHeld is a finalizer on the operator's pods until its process has ended.
	podHeld = "test.example/kubelet"
)

// site is a cluster on which the operator is deployed. It has no node: its pods never start, and the World's operator process runs
// instead of them.
type site struct {
	words.Cluster
	// overlay is what is deployed.
	overlay string
}

// newSite starts a control plane with the operator deployed.
func newSite(ctx SpecContext, overlay string) site {
	GinkgoHelper()
	w, err := devcluster.Start(ctx, devcluster.Options{
		Overlay: "config/overlays/" + overlay, Operator: devcluster.OperatorOptions{Manager: manager},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	s := site{words.Cluster{World: w}, overlay}
	s.kubelet()
	s.deploy(ctx)
	return s
}

// script runs a script of hack as a cluster admin does, and returns all that it printed.
func (s site) script(ctx context.Context, name string, args ...string) string {
	GinkgoHelper()
	answer, err := s.tryScript(ctx, name, args...)
	Expect(err).NotTo(HaveOccurred(), "%s %q:\n%s", name, args, answer)
	return answer
}

// tryScript runs a script that may fail.
func (s site) tryScript(ctx context.Context, name string, args ...string) (string, error) {
	GinkgoHelper()
	root, err := devcluster.Root()
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(ctx, filepath.Join(root, "hack", name), args...)
	cmd.Env = slices.Concat([]string{"CRD_TIMEOUT=5m"}, os.Environ(), []string{"MANAGER=" + manager, "KUBECTL=" + s.KubectlPath, "KUBERC=off",
		"KUBECONFIG=" + s.Kubeconfig(controlplane.Admin), "KUBECACHEDIR=" + filepath.Join(s.Dir, "kubectl-cache")})
	answer, err := cmd.CombinedOutput()
	return string(answer), err
}

// deploy deploys as `make deploy` does, and starts the operator if it doesn't run.
func (s site) deploy(ctx context.Context) {
	GinkgoHelper()
	s.script(ctx, "deploy.sh", s.overlay, "warren:test", "", "none")
	s.withoutWebhooks(ctx)
	held := client.RawPatch(apitypes.MergePatchType, []byte(`{"spec":{"template":{"metadata":{"finalizers":["`+podHeld+`"]}}}}`))
	Expect(s.Admin().Patch(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: deployment}}, held)).To(Succeed())
	Eventually(s.heldPods).WithContext(ctx).ShouldNot(BeEmpty(), "a pod of the Deployment waits for a node")
	if !s.Operator.Process().Running() {
		Expect(s.Operator.Start(ctx)).To(Succeed())
	}
}

// withoutWebhooks deletes the webhook configurations, because no pod here will ever answer. The operator of this World serves no
// webhooks.
func (s site) withoutWebhooks(ctx context.Context) {
	GinkgoHelper()
	for _, object := range webhookConfigurations() {
		Expect(client.IgnoreNotFound(s.Admin().Delete(ctx, object))).To(Succeed())
	}
}

// webhookConfigurations are Warren's two webhook configurations, empty.
func webhookConfigurations() []client.Object {
	return []client.Object{
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "warren"}},
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "warren"}},
	}
}

// undeploy undeploys as `make undeploy` does.
func (s site) undeploy(ctx context.Context) string {
	GinkgoHelper()
	return s.script(ctx, "undeploy.sh")
}

func (s site) pods(ctx context.Context) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := s.Admin().List(ctx, list, client.InNamespace(system))
	return list.Items, err
}

func (s site) heldPods(ctx context.Context) ([]string, error) {
	pods, err := s.pods(ctx)
	var names []string
	for i := range pods {
		if pods[i].DeletionTimestamp.IsZero() && len(pods[i].Finalizers) > 0 {
			names = append(names, pods[i].Name)
		}
	}
	return names, err
}

// kubelet does what a kubelet would: when the Deployment is scaled to 0, it ends the operator's process and only then lets
// the pods go.
func (s site) kubelet() {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	DeferCleanup(func() { stop(); <-ended })
	go func() {
		defer close(ended)
		defer GinkgoRecover()
		for ctx.Err() == nil {
			s.endPods(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
}

func (s site) endPods(ctx context.Context) {
	d := &appsv1.Deployment{}
	err := s.Admin().Get(ctx, client.ObjectKey{Namespace: system, Name: deployment}, d)
	off := err == nil && d.Spec.Replicas != nil && *d.Spec.Replicas == 0
	if off && s.Operator.Process().Running() {
		code, err := s.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		Expect(code).To(BeZero(), "the operator ends in order")
	}
	pods, err := s.pods(ctx)
	if err != nil {
		return
	}
	for i := range pods {
		if pods[i].DeletionTimestamp.IsZero() || len(pods[i].Finalizers) == 0 {
			continue
		}
		patch := client.RawPatch(apitypes.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		_ = s.Admin().Patch(ctx, &pods[i], patch)
	}
}

// tenant makes a tenant with a sub-namespace, a copied Secret and something of its own in both.
func (s site) tenant(ctx context.Context, name string) {
	GinkgoHelper()
	sub := name + "-web"
	Eventually(func() error {
		return s.Admin().Create(ctx, build.Tenant(name).Users("alice").Managers("mia").Sudoers("bob").Cascading().Object())
	}).WithContext(ctx).Should(Succeed(), "the API server may still know the webhooks")
	s.Exists(ctx, build.Namespace(name))
	s.Create(ctx, build.SubNamespace(name, sub), build.ConfigMap(name, "own", "v"),
		build.Source(build.Secret(name, "shared", "v"), v1alpha1.ModeUpdate))
	s.Exists(ctx, build.Secret(sub, "shared", ""))
	s.Exists(ctx, build.RoleBinding(sub, "warren:sudoers", ""), build.RoleBinding(sub, "warren:users", ""))
	s.Exists(ctx, build.ConfigMap(name, "kube-root-ca.crt", ""), build.ConfigMap(sub, "kube-root-ca.crt", "")) // from Kubernetes
	s.Create(ctx, build.ConfigMap(sub, "own", "v"))
	s.ready(ctx, name)
}

func (s site) ready(ctx context.Context, tenant string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		lns := build.Tenant(tenant).Object()
		g.Expect(s.Read(lns)(ctx)).To(Succeed())
		c := v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Status).To(Equal(metav1.ConditionTrue), c.Message)
		g.Expect(lns.Finalizers).To(ContainElement(v1alpha1.FinalizerLNamespace))
		sub := build.SubNamespace(tenant, tenant+"-web")
		g.Expect(s.Read(sub)(ctx)).To(Succeed())
		g.Expect(sub.Finalizers).To(ContainElement(v1alpha1.FinalizerSubNamespace))
	}).WithContext(ctx).Should(Succeed(), "tenant %s and its sub-namespace are ready", tenant)
}

// kubectl runs kubectl as a user and returns what it printed, and whether it was allowed.
func (s site) kubectl(ctx context.Context, user, line string) (string, bool) {
	stdout, stderr, code := s.Kubectl(ctx, user, strings.Fields(line)...)
	return stdout + stderr, code == 0
}
