package guard_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("an operator with somebody else's kubeconfig", func() {
	It("SEC-X8 the operator with admin's kubeconfig ends with status 1 and `running as \"admin\", but the policies name`, unless it has "+
		"--allow-other-identity or no policy copy exists", func(ctx SpecContext) {
		o := start(ctx, devcluster.Options{WithoutOperator: true})
		manager, err := devcluster.BuildManager(ctx)
		Expect(err).NotTo(HaveOccurred())
		mark := o.Mark(ctx)

		cmd := exec.CommandContext(ctx, manager, "--kubeconfig="+o.Kubeconfig(controlplane.Admin), "--metrics-bind-address=0",
			"--health-probe-bind-address=0")
		out := &bytes.Buffer{}
		cmd.Stdout, cmd.Stderr = out, out
		Expect(cmd.Run()).To(HaveOccurred())
		Expect(cmd.ProcessState.ExitCode()).To(Equal(1))
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		Expect(lines[len(lines)-1]).To(Equal(`error: running as "admin", but the policies name "` + controlplane.Operator +
			`"; use its token or --allow-other-identity`))
		requests, err := o.Requests(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		for _, r := range requests {
			Expect(r.User == controlplane.Admin && r.IsWrite() && r.Resource != "selfsubjectreviews").To(BeFalse(), "wrote %s", r)
		}

		other := func(args ...string) {
			GinkgoHelper()
			running, err := devcluster.StartOperator(ctx, devcluster.OperatorOptions{
				Manager: manager, Kubeconfig: o.Kubeconfig(controlplane.Admin), Dir: filepath.Join(GinkgoT().TempDir(), "operator"), Args: args,
			})
			Expect(err).NotTo(HaveOccurred())
			code, err := running.Stop()
			Expect(err).NotTo(HaveOccurred())
			Expect(code).To(BeZero())
		}
		other("--allow-other-identity")
		Expect(o.Admin().Delete(ctx, &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "warren-copy"}})).
			To(Succeed())
		other()
	})
})
