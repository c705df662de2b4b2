package propagation_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/gate"
)

var _ = Describe("an operator whose watch of Namespaces is behind", func() {
	It("PROP-V6 while its watch of Namespaces stalls, and afterwards, the operator deletes no copy that another operator wrote after a "+
		"move; it reads the ancestors live once for each namespace", func(ctx SpecContext) {
		w := start(ctx, setup{WithoutOperator: true})
		g := gate.New(w)
		g.StartOperator(ctx, w, setup{}.config())
		f := grow(ctx, w)
		var sources []*corev1.Secret
		for i := range 20 {
			s := build.Source(build.Secret(f.zeta, fmt.Sprint("s", i), "of zeta"), v1alpha1.ModeUpdate)
			f.create(ctx, s)
			sources = append(sources, s)
		}
		copied := func(namespaces ...string) {
			GinkgoHelper()
			for _, s := range sources {
				f.copied(ctx, s, namespaces...)
			}
		}
		copied(f.z)
		other := startOther(ctx, w)
		g.Freeze(func(r *http.Request) bool { return r.URL.Path == "/api/v1/namespaces" && r.URL.Query().Has("watch") })
		l, looks := f.ledger(ctx, "secrets"), f.ledger(ctx, "namespaces")
		f.move(ctx, f.a, f.zeta)
		copied(f.a, f.a1)
		_, err := other.Stop()
		Expect(err).NotTo(HaveOccurred())
		deletes := func(ctx context.Context) counts {
			return l.count(ctx, func(r audit.Request) bool { return r.Verb == "delete" })
		}
		Consistently(ctx, deletes).WithTimeout(test.Quiet(soon)).Should(BeEmpty(), l.String)
		gets := looks.count(ctx, func(r audit.Request) bool { return r.Verb == "get" })["get"]
		Expect(gets).To(And(BeNumerically(">=", 2), BeNumerically("<=", 12)), "at most the way up from either, twice")
		g.Thaw()
		Consistently(ctx, deletes).WithTimeout(test.Quiet(soon)).Should(BeEmpty(), l.String)
		copied(f.a, f.a1)
	})
})

// startOther starts a second operator beside that of w. The second one sees everything.
func startOther(ctx context.Context, w *devcluster.World) *devcluster.Operator {
	GinkgoHelper()
	o, err := devcluster.StartOperator(ctx, devcluster.OperatorOptions{
		Kubeconfig: w.Kubeconfig(controlplane.Operator), Dir: filepath.Join(w.Dir, "other"), Config: setup{}.config(),
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		if o.Process().Running() {
			_, err := o.Stop()
			Expect(err).NotTo(HaveOccurred())
		}
	})
	return o
}
