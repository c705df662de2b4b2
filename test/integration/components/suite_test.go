// Package components_test renders every overlay and component of config as `make deploy` does, and applies them to a real API server. It
// shows what the policies in components refuse. No operator runs: the tests only use its token.
package components_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
	"github.com/warren-tenancy/warren/test/words"
)

var world words.Cluster

func TestComponents(t *testing.T) { suite.Run(t, "Components") }

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	w, err := devcluster.Start(ctx, devcluster.Options{WithoutOperator: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	world.World = w
	Expect(devcluster.Apply(ctx, w.Config(controlplane.Admin), added("hierarchy-authority"))).To(Succeed())
	return w.Bytes()
}, func(data []byte) {
	var err error
	world.World, err = devcluster.Connect(data)
	Expect(err).NotTo(HaveOccurred())
})

// added are the policies of a component and their bindings, as they are rendered on top of overlay standard.
func added(component string) devcluster.Manifests {
	GinkgoHelper()
	all, err := devcluster.RenderWith("config/overlays/standard", "config/components/"+component)
	Expect(err).NotTo(HaveOccurred())
	var manifests devcluster.Manifests
	for _, u := range all {
		if u.GetName() == "warren-"+component {
			manifests = append(manifests, u)
		}
	}
	Expect(manifests).To(HaveLen(2))
	return manifests
}

// names are the folders in a folder of config.
func names(folder string) []string {
	GinkgoHelper()
	root, err := devcluster.Root()
	Expect(err).NotTo(HaveOccurred())
	entries, err := os.ReadDir(filepath.Join(root, "config", folder))
	Expect(err).NotTo(HaveOccurred())
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// eventuallyRefused waits until a request is refused with a text: a policy takes a moment to come into force.
func eventuallyRefused(ctx context.Context, text string, request func() error) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		err := request()
		g.Expect(err).To(HaveOccurred(), "it must be refused: %s", text)
		g.Expect(apierrors.IsForbidden(err) || apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		g.Expect(err.Error()).To(ContainSubstring(text))
	}).WithContext(ctx).Should(Succeed())
}

func isOurs(name string) bool { return strings.HasPrefix(name, "warren-") }
