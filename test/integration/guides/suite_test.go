// Package guides_test runs what the guides tell a user to type, with the real kubectl and plugins. The cluster has overlay loopback. That
// is overlay standard, with webhooks and component strict-placement, for an operator outside the cluster. Cases share one World and use
// names of their own.
package guides_test

import (
	"context"
	"encoding/json"
	"maps"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
	"github.com/warren-tenancy/warren/test/words"
)

// configuration is the one that the tutorial of from-accurate.md asks for.
const configuration = `apiVersion: config.tenancy.warren.dev/v1alpha1
kind: OperatorConfiguration
inheritance:
  labels: [team, "pod-security.kubernetes.io/*"]
subNamespaces:
  labels: [foo]
  annotations: [baz]
`

var world words.Cluster

func TestGuides(t *testing.T) { suite.Run(t, "Guides") }

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	plugins, err := devcluster.BuildPlugins(ctx)
	Expect(err).NotTo(HaveOccurred())
	w, err := devcluster.Start(ctx, devcluster.Options{Webhooks: true, Operator: devcluster.OperatorOptions{Config: configuration}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	w.Plugins = plugins
	Expect(w.Admin().Create(ctx, build.Tenant("payments").Object())).To(Succeed(), "the tenant of the guides")
	return w.Bytes()
}, func(data []byte) {
	var err error
	world.World, err = devcluster.Connect(data)
	Expect(err).NotTo(HaveOccurred())
})

var _ = ReportAfterEach(func(report SpecReport) {
	if report.Failed() && world.World != nil {
		AddReportEntry("log of the operator", ReportEntryVisibilityNever, world.Operator.Log())
	}
})

// answer is what a command printed, and its exit status.
type answer struct {
	Out, Err string
	Code     int
}

// kubectl runs kubectl as a user.
func kubectl(ctx context.Context, user string, args ...string) answer {
	out, problems, code := world.Kubectl(ctx, user, args...)
	return answer{out, problems, code}
}

// asAdmin runs kubectl as a cluster admin.
func asAdmin(ctx context.Context, args ...string) answer {
	return kubectl(ctx, controlplane.Admin, args...)
}

// hierarchy reads the HierarchyConfiguration of a namespace, for Eventually.
func hierarchy(namespace string) func(context.Context) (*v1alpha1.HierarchyConfiguration, error) {
	return func(ctx context.Context) (*v1alpha1.HierarchyConfiguration, error) {
		hc := build.Hierarchy(namespace)
		return hc, world.Admin().Get(ctx, client.ObjectKeyFromObject(hc), hc)
	}
}

// metadata reads the labels and annotations of a Namespace, as one map, for Eventually.
func metadata(name string) func(context.Context) (map[string]string, error) {
	return func(ctx context.Context) (map[string]string, error) {
		n := build.Namespace(name)
		err := world.Admin().Get(ctx, client.ObjectKeyFromObject(n), n)
		all := map[string]string{}
		for _, keys := range []map[string]string{n.Labels, n.Annotations} {
			maps.Copy(all, keys)
		}
		return all, err
	}
}

// apply applies a HierarchyConfiguration with kubectl, as a cluster admin.
func apply(ctx context.Context, hc *v1alpha1.HierarchyConfiguration, args ...string) answer {
	GinkgoHelper()
	hc = hc.DeepCopy()
	hc.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("HierarchyConfiguration"))
	text, err := json.Marshal(map[string]any{"apiVersion": hc.APIVersion, "kind": hc.Kind,
		"metadata": map[string]string{"namespace": hc.Namespace, "name": hc.Name}, "spec": hc.Spec})
	Expect(err).NotTo(HaveOccurred())
	out, problems, code := world.KubectlWith(ctx, controlplane.Admin, string(text),
		append([]string{"apply", "--server-side", "-f", "-"}, args...)...)
	return answer{out, problems, code}
}
