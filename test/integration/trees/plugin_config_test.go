package trees_test

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("kubectl warren config", func() {
	It("shows the file in force, and which of it is a default", func(ctx SpecContext) {
		file, err := os.ReadFile(shared.Operator.ConfigFile)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() string {
			out, _, _ := shared.warren(ctx, controlplane.Admin, "config", "view")
			return out
		}).WithContext(ctx).Should(Equal(string(file)), "the leader records it")
		Expect(shared.done(ctx, controlplane.Admin, "config", "view", "-o", "yaml")).To(And(HavePrefix("acceptRemovals: \"\"\naccess:\n"),
			ContainSubstring("userClusterRole: admin")))
		Expect(shared.fails(ctx, controlplane.Admin, "config", "view", "--operator-namespace", "xv-none")).
			To(HavePrefix("the operator has recorded no configuration file in ConfigMap xv-none/warren-accepted-config: "))
		Expect(shared.fails(ctx, "alice", "config", "view")).To(ContainSubstring(`cannot get resource "configmaps"`))
	})

	It("finds what the operator finds in a file", func(ctx SpecContext) {
		path, stderr := refusedFile(ctx, invalid)
		copied := filepath.Join(GinkgoT().TempDir(), "config.yaml")
		Expect(os.WriteFile(copied, []byte(invalid), 0o600)).To(Succeed())
		_, said, code := shared.warren(ctx, controlplane.Admin, "config", "validate", copied)
		Expect(code).To(Equal(1))
		var found []string
		for line := range strings.Lines(said) {
			line, ok := strings.CutPrefix(strings.ReplaceAll(line, copied, path), "error: ")
			Expect(ok).To(BeTrue(), line)
			found = append(found, line)
			Expect(stderr).To(ContainSubstring(line))
		}
		Expect(found).To(HaveLen(6))
	})
})
