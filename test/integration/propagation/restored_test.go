package propagation_test

import (
	"fmt"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("a cluster whose etcd is restored from a snapshot", func() {
	It("FLT-F40 after a restore of etcd, copies are those that the snapshot asks for, and its user objects stay; an operator that was up "+
		"logs it and ends with status 1", Label("slow"), func(ctx SpecContext) {
		w := start(ctx, setup{})
		f := grow(ctx, w)
		before := build.Source(build.Secret(f.acme, "before", "1"), v1alpha1.ModeUpdate)
		lost := build.Source(build.Secret(f.acme, "lost", "1"), v1alpha1.ModeUpdate)
		own := build.Secret(f.b, "own", "a user's")
		f.create(ctx, before, lost, own)
		f.copied(ctx, before, f.tree()...)
		f.copied(ctx, lost, f.tree()...)
		_, err := w.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		awaited := build.Source(build.Secret(f.acme, "awaited", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, awaited)
		snapshot := filepath.Join(GinkgoT().TempDir(), "etcd")
		Expect(w.ControlPlane.SaveEtcd(ctx, snapshot)).To(Succeed())

		Expect(w.Operator.Start(ctx)).To(Succeed())
		f.copied(ctx, awaited, f.tree()...)
		later := build.Source(build.Secret(f.acme, "later", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, later)
		for i := range 500 { // so that the snapshot is older by more writes than a start of the API server makes
			f.label(ctx, own, "turn", fmt.Sprint("t", i))
		}
		f.remove(ctx, lost, own)
		f.move(ctx, f.a, f.zeta)
		f.copied(ctx, later, f.b)
		f.absent(ctx, lost, f.tree()...)
		f.absent(ctx, before, f.a, f.a1)

		asInSnapshot := func() {
			GinkgoHelper()
			f.copied(ctx, before, f.tree()...)
			f.copied(ctx, lost, f.tree()...)
			f.copied(ctx, awaited, f.tree()...)
			f.absent(ctx, later, f.tree()...)
			Expect(w.Admin().Get(ctx, client.ObjectKeyFromObject(own), build.Secret(f.b, "own", ""))).To(Succeed())
		}
		Expect(w.ControlPlane.RestoreEtcd(ctx, snapshot)).To(Succeed())
		Eventually(w.Operator.Process().Done()).Should(BeClosed())
		Expect(w.Operator.Process().ExitCode()).To(Equal(1))
		Expect(w.Operator.Log()).To(MatchRegexp(`the cluster went from resourceVersion \d+ back to \d+, as when etcd is restored`))
		Expect(w.Operator.Start(ctx)).To(Succeed(), "as the kubelet starts it")
		asInSnapshot()

		later = build.Source(build.Secret(f.acme, "later", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, later)
		f.remove(ctx, before, own)
		f.copied(ctx, later, f.tree()...)
		f.absent(ctx, before, f.tree()...)
		_, err = w.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		Expect(w.ControlPlane.RestoreEtcd(ctx, snapshot)).To(Succeed())
		Expect(w.Operator.Start(ctx)).To(Succeed(), "it was down during the restore")
		asInSnapshot()
	})
})
