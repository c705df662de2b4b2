package requests_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/words"
)

// tenant is one with managers mia and lea and sudoer bob, in which carol and group pay-oncall may ask for sudo.
type tenant struct {
	words.Cluster
	root string
}

// plant makes a tenant, changed by edit, and waits until carol may ask there.
func plant(ctx context.Context, w *devcluster.World, edit func(*v1alpha1.LNamespaceSpec)) *tenant {
	GinkgoHelper()
	t := &tenant{Cluster: words.Cluster{World: w}, root: unique("pay")}
	lns := build.Tenant(t.root).Users("alice").Managers("mia", "lea").Sudoers("bob").Cascading().Object()
	lns.Spec.SudoRequests = &v1alpha1.SudoRequests{Eligible: append(build.Users("carol"), build.Group("pay-oncall"))}
	if edit != nil {
		edit(&lns.Spec)
	}
	t.Create(ctx, lns)
	Eventually(ctx, func() error { return t.As("mia").List(ctx, &v1alpha1.SudoRequestList{}, client.InNamespace(t.root)) }).Should(Succeed())
	// A request must be younger than its tenant, and creation times have whole seconds.
	Eventually(ctx, time.Now).Should(BeTemporally(">", lns.CreationTimestamp.Add(1100*time.Millisecond)))
	return t
}

func request(root, user string) *v1alpha1.SudoRequest {
	return &v1alpha1.SudoRequest{ObjectMeta: metav1.ObjectMeta{Namespace: root, GenerateName: "r-"},
		Spec: v1alpha1.SudoRequestSpec{User: user, Reason: "Restore the ledger", Duration: "10m", Decisions: []v1alpha1.SudoDecision{}}}
}

// ask makes a request of carol.
func (t *tenant) ask(ctx context.Context, duration v1alpha1.SudoDuration) *v1alpha1.SudoRequest {
	GinkgoHelper()
	r := request(t.root, "carol")
	r.Spec.Duration = duration
	Eventually(ctx, func() error { return t.As("carol").Create(ctx, r) }).Should(Succeed())
	return r
}

// decide adds a decision as a person, in their own name.
func (t *tenant) decide(ctx context.Context, r *v1alpha1.SudoRequest, who string, verdict v1alpha1.SudoVerdict) error {
	return t.add(ctx, t.As(who), r, v1alpha1.SudoDecision{User: who, Verdict: verdict})
}

func (t *tenant) add(ctx context.Context, as client.Client, r *v1alpha1.SudoRequest, d v1alpha1.SudoDecision) error {
	group := ""
	if d.Group != "" {
		group = fmt.Sprintf(`,"group":%q`, d.Group)
	}
	patch := fmt.Sprintf(`[{"op":"add","path":"/spec/decisions/-","value":{"user":%q,"verdict":%q%s}}]`, d.User, d.Verdict, group)
	return as.Patch(ctx, r.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(patch)))
}

// approve is an approval that must be accepted.
func (t *tenant) approve(ctx context.Context, r *v1alpha1.SudoRequest, who string) {
	GinkgoHelper()
	Expect(t.decide(ctx, r, who, v1alpha1.SudoApprove)).To(Succeed())
}

// read returns a request as it is.
func (t *tenant) read(ctx context.Context, r *v1alpha1.SudoRequest) *v1alpha1.SudoRequest {
	GinkgoHelper()
	is := &v1alpha1.SudoRequest{}
	Expect(t.Admin().Get(ctx, client.ObjectKeyFromObject(r), is)).To(Succeed())
	return is
}

// reason is that of condition Active, with its message.
func (t *tenant) reason(ctx context.Context, r *v1alpha1.SudoRequest) func() string {
	return func() string {
		is := &v1alpha1.SudoRequest{}
		if err := t.Admin().Get(ctx, client.ObjectKeyFromObject(r), is); err != nil {
			return err.Error()
		}
		active := meta.FindStatusCondition(is.Status.Conditions, string(v1alpha1.ConditionActive))
		if active == nil {
			return ""
		}
		return active.Reason + ": " + active.Message
	}
}

func (t *tenant) says(ctx context.Context, r *v1alpha1.SudoRequest, reason v1alpha1.Reason, parts ...string) {
	GinkgoHelper()
	Eventually(ctx, t.reason(ctx, r)).Should(HavePrefix(string(reason) + ":"))
	for _, part := range parts {
		Expect(t.reason(ctx, r)()).To(ContainSubstring(part))
	}
}

// try reads Secrets in a namespace as carol who impersonates the temporary sudoer of the tenant.
func (t *tenant) try(ctx context.Context, namespace string) func() error {
	as := t.temporary("carol")
	return func() error { return as.List(ctx, &corev1.SecretList{}, client.InNamespace(namespace)) }
}

// temporary returns the client of a user who impersonates the temporary sudoer of the tenant, with more groups.
func (t *tenant) temporary(user string, groups ...string) client.WithWatch {
	return t.Impersonate(user, rest.ImpersonationConfig{UserName: v1alpha1.TemporarySudoer(t.root), Groups: groups})
}

// granted makes a request of carol that mia approves, and waits until it is in force.
func (t *tenant) granted(ctx context.Context, duration v1alpha1.SudoDuration) *v1alpha1.SudoRequest {
	GinkgoHelper()
	r := t.ask(ctx, duration)
	t.approve(ctx, r, "mia")
	t.says(ctx, r, v1alpha1.ReasonGranted)
	Eventually(ctx, t.try(ctx, t.root)).Should(Succeed())
	return r
}

// denied waits until carol has no sudo.
func (t *tenant) denied(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, t.try(ctx, t.root)).WithPolling(50 * time.Millisecond).Should(MatchError(apierrors.IsForbidden, "is a 403"))
}

// grant returns the objects of a grant; nil where one doesn't exist.
func (t *tenant) grant(ctx context.Context, r *v1alpha1.SudoRequest) (*batchv1.Job, *rbacv1.Role, *rbacv1.RoleBinding) {
	GinkgoHelper()
	key := client.ObjectKey{Namespace: v1alpha1.SudoNamespace, Name: string(r.UID)}
	job, role, binding := &batchv1.Job{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}
	if t.missing(ctx, key, job) {
		job = nil
	}
	if t.missing(ctx, key, role) {
		role = nil
	}
	if t.missing(ctx, key, binding) {
		binding = nil
	}
	return job, role, binding
}

func (t *tenant) missing(ctx context.Context, key client.ObjectKey, into client.Object) bool {
	GinkgoHelper()
	err := t.Admin().Get(ctx, key, into)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	return err != nil
}

// change changes the spec of the LNamespace as the cluster admin.
func (t *tenant) change(ctx context.Context, edit func(*v1alpha1.LNamespaceSpec)) {
	GinkgoHelper()
	Eventually(ctx, func() error {
		lns := &v1alpha1.LNamespace{}
		if err := t.Admin().Get(ctx, client.ObjectKey{Name: t.root}, lns); err != nil {
			return err
		}
		edit(&lns.Spec)
		return t.Admin().Update(ctx, lns)
	}).Should(Succeed())
}

func beRefused(part string) gomegatypes.GomegaMatcher { return MatchError(ContainSubstring(part)) }
