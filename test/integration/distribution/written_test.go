package distribution_test

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// writtenSecrets are the operator's writes to the copies of these fields: verb and namespace.
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
