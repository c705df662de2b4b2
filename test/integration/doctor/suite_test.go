// Package doctor_test runs `kubectl warren doctor` and `kubectl warren protect` by the real kubectl on clusters that are
// well, and on the same clusters with one thing wrong.
package doctor_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
)

var world *devcluster.World

func TestDoctor(t *testing.T) { suite.Run(t, "Doctor") }

// baseline is the admission configuration that the install guide asks for.
const baseline = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: baseline}
`

var _ = BeforeSuite(func(ctx SpecContext) {
	plugins, err := devcluster.BuildPlugins(ctx)
	Expect(err).NotTo(HaveOccurred())
	admission := filepath.Join(GinkgoT().TempDir(), "admission.yaml")
	Expect(os.WriteFile(admission, []byte(baseline), 0o600)).To(Succeed())
	world, err = devcluster.Start(ctx, devcluster.Options{
		ControlPlane:    controlplane.Options{APIServerArgs: []string{"--admission-control-config-file", admission}},
		WithoutOperator: true, // the doctor checks walls that exist without it
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(world.Stop)
	world.Plugins = plugins
	Expect(world.RecordConfig(ctx)).To(Succeed())
})

// check is one check in the output of doctor -o json.
type check struct{ Name, Status, Message, Advice string }

// examine runs doctor as a user and returns its checks by name, and the exit code.
func examine(ctx SpecContext, user string, args ...string) (map[string]check, int) {
	GinkgoHelper()
	out, problems, code := world.Kubectl(ctx, user, append([]string{"warren", "doctor", "-o", "json"}, args...)...)
	var diagnosis struct {
		APIVersion, Kind string
		Checks           []check
	}
	Expect(json.Unmarshal([]byte(out), &diagnosis)).To(Succeed(), "%s%s", out, problems)
	Expect(diagnosis.Kind).To(Equal("Diagnosis"))
	checks := map[string]check{}
	for _, c := range diagnosis.Checks {
		Expect(checks).NotTo(HaveKey(c.Name))
		checks[c.Name] = c
	}
	return checks, code
}
