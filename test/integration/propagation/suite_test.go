// Package propagation_test runs the cases of the specification's page propagation against a real control plane.
package propagation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
)

// soon is how long a case watches that nothing happens: by the specification, a change has arrived within that time.
const soon = 5 * time.Second

func TestPropagation(t *testing.T) { suite.Run(t, "propagation") }

// The worlds of all cases that stop no process and change no configuration. In unguarded, no admission policy keeps users from changing a
// copy.
var world, unguarded *devcluster.World

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	kinds := slices.Concat(usualKinds, furtherKinds)
	data, err := json.Marshal([]json.RawMessage{
		start(ctx, setup{Kinds: kinds}).Bytes(),
		start(ctx, setup{Kinds: kinds, WithoutPolicies: true}).Bytes(),
	})
	Expect(err).NotTo(HaveOccurred())
	return data
}, func(data []byte) {
	var worlds []json.RawMessage
	Expect(json.Unmarshal(data, &worlds)).To(Succeed())
	var err error
	world, err = devcluster.Connect(worlds[0])
	Expect(err).NotTo(HaveOccurred())
	unguarded, err = devcluster.Connect(worlds[1])
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
	// Gates are entries of featureGates.
	Gates string
	// WithoutOperator starts none, WithoutPolicies leaves the admission policies out.
	WithoutOperator, WithoutPolicies bool
	// Webhooks serves webhooks, too.
	Webhooks bool
}

// config is the operator's configuration. PROPAGATION_SCOPE, if set, is the scope of every kind whose entry names none, except RBAC.
func (s setup) config() string {
	text := "apiVersion: config.tenancy.warren.dev/v1alpha1\nkind: OperatorConfiguration\nfeatureGates: {" + s.Gates + "}\npropagation:\n" +
		"  retry: {min: 200ms, max: 2s}\n" + s.Propagation + "  kinds:\n"
	if s.Kinds == nil {
		s.Kinds = usualKinds
	}
	for _, kind := range s.Kinds {
		if scope := os.Getenv("PROPAGATION_SCOPE"); scope != "" && !strings.Contains(kind, "scope:") && !strings.Contains(kind,
			rbacv1.GroupName) {
			kind = strings.TrimSuffix(kind, "}") + ", scope: " + scope + "}"
		}
		text += "  - " + kind + "\n"
	}
	return text
}

// auditPolicy also records the bodies of the operator's updates and deletions, because they have the preconditions.
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

// start starts a World with the CRD of Widgets. It ends with the case.
func start(ctx context.Context, s setup) *devcluster.World {
	GinkgoHelper()
	policy := filepath.Join(GinkgoT().TempDir(), "audit-policy.yaml")
	Expect(os.WriteFile(policy, []byte(auditPolicy), 0o600)).To(Succeed())
	w, err := devcluster.Start(ctx, devcluster.Options{
		WithoutOperator: s.WithoutOperator, WithoutPolicies: s.WithoutPolicies, Webhooks: s.Webhooks,
		ControlPlane: controlplane.Options{
			APIServerArgs:     []string{"--audit-policy-file", policy},
			BeforeControllers: func(cp *controlplane.ControlPlane) error { return installWidgets(ctx, cp) },
		},
		Operator: devcluster.OperatorOptions{Config: s.config()},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	return w
}

// explain is the text of a failed assertion: the operator's log.
func explain(w *devcluster.World) func() string {
	return func() string { return fmt.Sprintf("the operator's log:\n%s", w.Operator.Log()) }
}
