package vetting_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/rolevetting"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// listCases are the cases about lists. They run before another case changes what the cluster serves.
func listCases() {
	// make verify has no control plane, so this case compares the committed list.
	It("has the rights of the list that is committed for this version of Kubernetes, as kubectl warren vet --write makes it",
		func(ctx SpecContext) {
			if os.Getenv("WARREN_EMULATED_VERSION") != "" {
				Skip("a server that emulates a version has resources of its own, and the list of that version is written from the real one")
			}
			root, err := devcluster.Root()
			Expect(err).NotTo(HaveOccurred())
			dir := GinkgoT().TempDir()
			var out, problems string
			Eventually(func() int {
				var code int
				out, problems, code = world.Kubectl(ctx, controlplane.Admin, "warren", "vet", "--write", "--dir", dir, "--note", "by a test")
				return code
			}).WithContext(ctx).Should(BeZero(), "once everything is aggregated")
			file, ok := strings.CutSuffix(strings.TrimSpace(out), " written")
			Expect(ok).To(BeTrue(), "%s%s", out, problems)
			written, committed := read(file), read(filepath.Join(root, "docs", "vetted", filepath.Base(file)))
			Expect(written.Reviewed.Note).To(Equal("by a test"))
			Expect(written.Rules).To(Equal(committed.Rules), "if that is as it should be: make vet-admin")
			Expect(written.Contributors).To(Equal(committed.Contributors), "if that is as it should be: make vet-admin")
			Expect(theirs(written)).To(Equal(theirs(committed)), "if that is as it should be: make vet-admin")

			By("a list that says the same keeps its review")
			out, _, code := world.Kubectl(ctx, controlplane.Admin, "warren", "vet", "--write", "--dir", dir, "--note", "another")
			Expect(code).To(BeZero())
			Expect(out).To(Equal(file + " unchanged\n"))
			Expect(read(file).Reviewed.Note).To(Equal("by a test"))
		})

	It("may not be seen by everybody: vet ends with a status of its own", func(ctx SpecContext) {
		out, problems, code := world.Kubectl(ctx, "alice", "warren", "vet")
		Expect(code).To(Equal(3))
		Expect(out).To(BeEmpty())
		Expect(problems).To(ContainSubstring("Warning: the operator's configuration is not known, so ClusterRole admin is compared"))
		Expect(problems).To(MatchRegexp(`(?m)^error: reading ClusterRole admin: .*"alice" cannot get resource "clusterroles"`))
		_, problems, code = world.Kubectl(ctx, controlplane.Admin, "warren", "vet", "--role", "nosuch")
		Expect(code).To(Equal(3))
		Expect(problems).To(Equal("error: reading ClusterRole nosuch: clusterroles.rbac.authorization.k8s.io \"nosuch\" not found\n"))
	})
}

// theirs are the resources of a list that belong to Kubernetes. Warren's may come and go: they don't matter for its users' rights.
func theirs(list *rolevetting.List) []string {
	return slices.DeleteFunc(slices.Clone(list.APIResources),
		func(resource string) bool { return strings.Contains(resource, "."+v1alpha1.Domain) })
}

func read(file string) *rolevetting.List {
	GinkgoHelper()
	data, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	list, err := rolevetting.Parse(data)
	Expect(err).NotTo(HaveOccurred())
	return list
}
