package trees_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/warren-tenancy/warren/test/suite"
)

// invalid has the six mistakes of SUB-F1.
const invalid = `apiVersion: config.tenancy.warren.dev/v1alpha1
kind: OperatorConfiguration
inheritance:
  lables: [team]
  annotations: [memo]
  annotations: [memo]
subNamespaces:
  labels: ["a["]
  namingPolicies:
  - {root: "(", match: "x"}
propagation:
  kinds:
  - {kind: Secret, mode: all}
featureGates: {Foo: true}
`

var _ = Describe("the operator starts with a configuration file", func() {
	It("SUB-F1 an operator that starts with a file of six mistakes "+
		"ends with status 1; stderr names all six, each with its path", func(ctx SpecContext) {
		path, stderr := refusedFile(ctx, invalid)
		Expect(stderr).To(And(
			containLine(path, "inheritance.lables", `unknown field "inheritance.lables"`),
			containLine(path, "inheritance.annotations", `key "annotations" already set`),
			containLine(path, "subNamespaces.labels[0]", "a["),
			containLine(path, "subNamespaces.namingPolicies[0].root", "("),
			containLine(path, "propagation.kinds[0].mode", "all"),
			containLine(path, "featureGates[Foo]", "unknown feature gate")))
	})

	It("SUB-F4 an undefined group in match, an invalid regexp, an inherited key of tenancy.warren.dev and kind ClusterRole (is "+
		"cluster-scoped) are refused with their paths", func(ctx SpecContext) {
		path, stderr := refusedFile(ctx, `apiVersion: config.tenancy.warren.dev/v1alpha1
kind: OperatorConfiguration
inheritance: {labels: ["tenancy.warren.dev/*"]}
subNamespaces:
  namingPolicies:
  - {root: "^app-(?P<team>.*)", match: "^app-${tean}-"}
  - {root: "^app-", match: "a(b"}
propagation:
  kinds: [{group: rbac.authorization.k8s.io, kind: ClusterRole}]
`)
		Expect(stderr).To(And(
			containLine(path, "subNamespaces.namingPolicies[0].match", `group "tean" is not defined by root`),
			containLine(path, "subNamespaces.namingPolicies[1].match", "error parsing regexp"),
			containLine(path, "inheritance.labels[0]", "can't be inherited"),
			containLine(path, "propagation.kinds[0].kind", "is cluster-scoped")))
	})
})

// refusedFile starts the operator with a file and expects that it ends at once. There is no API server for it to find.
func refusedFile(ctx context.Context, text string) (path, stderr string) {
	GinkgoHelper()
	path = filepath.Join(GinkgoT().TempDir(), "config.yaml")
	Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	ctx, cancel := context.WithTimeout(ctx, suite.Patience)
	defer cancel()
	var problems bytes.Buffer
	cmd := exec.CommandContext(ctx, built.Manager, "--config="+path, "--kubeconfig=/dev/null", "--metrics-bind-address=0",
		"--health-probe-bind-address=0")
	cmd.Stderr = &problems
	err := cmd.Run()
	var exit *exec.ExitError
	Expect(errors.As(err, &exit)).To(BeTrue(), "%v", err)
	Expect(exit.ExitCode()).To(Equal(1), problems.String())
	return path, problems.String()
}

// containLine matches a text with a line FILE: path: problem, in which the problem contains part.
func containLine(file, path, part string) types.GomegaMatcher {
	return MatchRegexp(`(?m)^(error: )?%s: %s: .*%s`, regexp.QuoteMeta(file), regexp.QuoteMeta(path), regexp.QuoteMeta(part))
}
