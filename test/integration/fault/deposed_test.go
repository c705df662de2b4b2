package fault_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/gate"
)

var _ = Describe("a leader that was frozen while another replica took over", func() {
	It("FLT-F18 ends when it reads that another replica holds the Lease, and its late writes change nothing", func(ctx SpecContext) {
		w, err := devcluster.Start(ctx, devcluster.Options{WithoutOperator: true})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		behind := gate.New(w)
		startReplica := func(name, kubeconfig string) *devcluster.Operator {
			GinkgoHelper()
			o, err := devcluster.StartOperator(ctx, devcluster.OperatorOptions{
				Kubeconfig: kubeconfig, Dir: filepath.Join(w.Dir, name), Config: configuration, Args: []string{"--leader-elect"},
			})
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(o.Kill)
			return o
		}
		holder := func() string {
			lease := &coordinationv1.Lease{}
			if w.Admin().Get(ctx, client.ObjectKey{Namespace: "warren-system", Name: v1alpha1.OperatorName}, lease) != nil ||
				lease.Spec.HolderIdentity == nil {
				return ""
			}
			return *lease.Spec.HolderIdentity
		}
		copied := build.Secret("frozen-a", "source", "")
		readCopy := func() (string, error) {
			err := w.Admin().Get(ctx, client.ObjectKeyFromObject(copied), copied)
			return string(copied.Data["key"]), err
		}

		old := startReplica("old", behind.Kubeconfig(w))
		Eventually(holder).ShouldNot(BeEmpty())
		deposed := holder()
		source := build.Source(build.Secret("frozen", "source", "1"), v1alpha1.ModeUpdate)
		for _, o := range []client.Object{build.Root("frozen"), build.Child("frozen-a", "frozen"), source} {
			Expect(w.Admin().Create(ctx, o)).To(Succeed())
		}
		Eventually(readCopy).Should(Equal("1"))
		startReplica("new", w.Kubeconfig(controlplane.Operator))

		Expect(old.Process().Signal(syscall.SIGSTOP)).To(Succeed())
		Eventually(holder).ShouldNot(BeElementOf("", deposed))
		source.Data = map[string][]byte{"key": []byte("2")}
		Expect(w.Admin().Update(ctx, source)).To(Succeed())
		Eventually(readCopy).Should(Equal("2"))
		version := copied.ResourceVersion

		var leaseReads atomic.Int32
		behind.Script(func(r gate.Request) gate.Fault {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/leases/"+v1alpha1.OperatorName) {
				leaseReads.Add(1)
			}
			return gate.Fault{}
		})
		Expect(old.Process().Signal(syscall.SIGCONT)).To(Succeed())
		Eventually(old.Process().Done()).Should(BeClosed(), old.Log)
		Expect(old.Process().ExitCode()).To(Equal(1), old.Log)
		Expect(leaseReads.Load()).To(BeNumerically("<=", 1), "it ends at once, and neither tries again nor waits")
		Expect(readCopy()).To(Equal("2"))
		Expect(copied.ResourceVersion).To(Equal(version))
		Expect(holder()).NotTo(BeElementOf("", deposed))
	})
})
