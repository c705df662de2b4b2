package distribution_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/internal/preview"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// planned is what manager plan says of the copies of these fields, as "create NAMESPACE", and its notes.
func planned(ctx context.Context, w *devcluster.World, manager string, fields ...*field) (lines, notes []string) {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "config.yaml")
	Expect(os.WriteFile(path, []byte(configuration), 0o600)).To(Succeed())
	out, err := exec.CommandContext(ctx, manager, "plan", "--config", path, "--kubeconfig", w.Kubeconfig(controlplane.Operator), "-o", "json").Output()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
	var plan preview.Plan
	Expect(json.Unmarshal(out, &plan)).To(Succeed())
	for _, write := range plan.Writes {
		if write.Kind == "Secret" && isOfField(write.Name, fields) {
			lines = append(lines, string(write.Verb)+" "+write.Namespace)
		}
	}
	return lines, plan.Notes
}

// writtenSecrets are the operator's writes to the copies of these fields, in the words of planned.
func writtenSecrets(ctx context.Context, w *devcluster.World, since audit.Position, fields ...*field) []string {
	GinkgoHelper()
	requests, err := w.Requests(ctx, since)
	Expect(err).NotTo(HaveOccurred())
	lines := []string{}
	for _, r := range requests {
		if r.User == controlplane.Operator && r.IsWrite() && r.Resource == "secrets" && r.Code < 300 && isOfField(r.Name, fields) {
			lines = append(lines, r.Verb+" "+r.Namespace)
		}
	}
	return lines
}

// isOfField says whether a Secret of this name is a copy of one of the fields.
func isOfField(name string, fields []*field) bool {
	return slices.ContainsFunc(fields, func(f *field) bool { return f.id == name })
}
