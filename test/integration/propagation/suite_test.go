// Package propagation_test runs the cases of the specification's page propagation against a real control plane.
package propagation_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/controlplane"
)

// soon is the specification's upper bound for a change to arrive.
const soon = 5 * time.Second

func TestPropagation(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrllog.SetLogger(logr.Discard()) // the clients' own; the operator logs into its file
	SetDefaultEventuallyTimeout(soon)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(100 * time.Millisecond)
	RunSpecs(t, "propagation")
}

// world is shared by all cases that stop nothing and change no configuration.
var world *test.World

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	return start(ctx, setup{Kinds: append(usualKinds, furtherKinds...)}).Bytes()
}, func(data []byte) {
	var err error
	world, err = test.Connect(data)
	Expect(err).NotTo(HaveOccurred())
})

var (
	usualKinds = []string{
		"{kind: Secret}", "{kind: ConfigMap}",
		"{group: rbac.authorization.k8s.io, kind: RoleBinding}", "{group: rbac.authorization.k8s.io, kind: Role, mode: All}",
	}
	furtherKinds = []string{
		"{kind: Service}", "{kind: ServiceAccount}", "{kind: LimitRange}", "{kind: ResourceQuota}",
		"{group: networking.k8s.io, kind: NetworkPolicy}", "{group: apps, kind: Deployment}",
		"{group: example.com, kind: Widget}",
	}
)

// setup says how a World differs from the usual one.
type setup struct {
	// Kinds are entries of propagation.kinds; empty means usualKinds.
	Kinds []string
	// Propagation are further lines of that section.
	Propagation string
	// WithoutOperator starts none.
	WithoutOperator bool
}

func (s setup) config() string {
	text := "apiVersion: config.tenancy.warren.dev/v1alpha1\nkind: OperatorConfiguration\npropagation:\n" +
		"  retry: {min: 200ms, max: 2s}\n" + s.Propagation + "  kinds:\n"
	if s.Kinds == nil {
		s.Kinds = usualKinds
	}
	for _, kind := range s.Kinds {
		text += "  - " + kind + "\n"
	}
	return text
}

// auditPolicy records also with what body the operator changes and deletes: that is where the guards stand.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  nonResourceURLs: [/readyz*, /livez*, /healthz*]
- level: Request
  users: ["` + controlplane.Operator + `"]
  verbs: [update, delete]
- level: Metadata
`

// start starts a World with the CRD of Widgets and the rights to all kinds. It ends with the case.
func start(ctx context.Context, s setup) *test.World {
	GinkgoHelper()
	policy := filepath.Join(GinkgoT().TempDir(), "audit-policy.yaml")
	Expect(os.WriteFile(policy, []byte(auditPolicy), 0o600)).To(Succeed())
	w, err := test.Start(ctx, test.Options{
		WithoutOperator: true,
		ControlPlane: controlplane.Options{
			APIServerArgs:     []string{"--audit-policy-file", policy},
			BeforeControllers: func(cp *controlplane.ControlPlane) error { return installWidgets(ctx, cp) },
		},
		Operator: test.OperatorOptions{Config: s.config()},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	allowFurtherKinds(ctx, w)
	if !s.WithoutOperator {
		_, err = w.StartOperator(ctx)
		Expect(err).NotTo(HaveOccurred())
	}
	return w
}

// allowFurtherKinds is what a cluster admin does for a kind more: one labelled ClusterRole, which the cluster gathers.
func allowFurtherKinds(ctx context.Context, w *test.World) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
		Name: "further-kinds", Labels: map[string]string{"tenancy.warren.dev/aggregate-to-kinds": "true"},
	}}
	for group, resources := range map[string][]string{
		"":                  {"services", "serviceaccounts", "limitranges", "resourcequotas"},
		"networking.k8s.io": {"networkpolicies"},
		"apps":              {"deployments"},
		"example.com":       {"widgets"},
	} {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{
			APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list", "watch", "create", "update", "delete"},
		})
	}
	Expect(w.Admin().Create(ctx, role)).To(Succeed())
	Eventually(ctx, func(ctx context.Context) (int, error) {
		gathered := &rbacv1.ClusterRole{}
		err := w.Admin().Get(ctx, client.ObjectKey{Name: "warren-kinds"}, gathered)
		return len(gathered.Rules), err
	}).WithTimeout(30*time.Second).Should(BeNumerically(">=", len(role.Rules)+2), "the controller manager gathers the rules")
}

// explain shows the operator's log where an assertion fails.
func explain(w *test.World) func() string {
	return func() string { return fmt.Sprintf("the operator's log:\n%s", w.Operator.Log()) }
}
