package fault_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/gate"
)

// down kills the operator until up is called.
func (s *stage) down() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alive = false
	_ = s.Operator.Kill()
}

// up starts the operator again, and waits until it is ready.
func (s *stage) up(ctx context.Context) {
	GinkgoHelper()
	life := s.now()
	s.dead <- struct{}{}
	Eventually(ctx, s.isReady).WithArguments(life + 1).Should(BeTrue())
}

// placeOfSecret is the namespace and the name of a Secret.
func placeOfSecret(s *corev1.Secret) string { return s.Namespace + "/" + s.Name }

var _ = Describe("an operator whose cluster misbehaves for everybody", Ordered, ContinueOnFailure, func() {
	var st *stage
	var endings map[string]ending

	BeforeAll(func(ctx SpecContext) {
		st = newStage(ctx, devcluster.Options{})
		endings = rehearseAll(ctx, st, "S1", "S2", "S3", "S5", "S6", "S7")
	})

	It("FLT-F16 if page 3 of a list is answered with 410, the list begins again, and the incomplete one changes and deletes "+
		"no copy", func(ctx SpecContext) {
		s := st.scene("f16")
		s.bush(ctx)
		var sources []*corev1.Secret
		for i := range 6 {
			sources = append(sources, s.source(fmt.Sprint("s", i), "1"))
			s.create(ctx, sources[i])
		}
		versions := map[string]string{}
		for n := range 3 {
			for i := range 6 {
				copied := build.Secret(s.own(fmt.Sprint("n", n)), fmt.Sprint("s", i), "")
				s.exist(ctx, copied)
				versions[placeOfSecret(copied)] = copied.ResourceVersion
			}
		}
		var mu sync.Mutex
		pages, expired := map[string]int{}, 0
		st.Script(func(r gate.Request) gate.Fault {
			query := r.URL.Query()
			switch {
			case r.Method != http.MethodGet || query.Get("watch") == "true" && query.Get("sendInitialEvents") != "true":
				return gate.Fault{}
			case query.Get("sendInitialEvents") == "true": // an API server that can't stream lists
				return gate.Fault{Code: http.StatusUnprocessableEntity}
			case query.Get("limit") == "" && query.Get("resourceVersion") == "":
				return gate.Fault{}
			}
			query.Set("limit", "4")
			query.Del("resourceVersion")
			query.Del("resourceVersionMatch")
			r.URL.RawQuery = query.Encode()
			mu.Lock()
			defer mu.Unlock()
			list := r.URL.Path + "?" + query.Get("labelSelector")
			if query.Get("continue") == "" {
				return gate.Fault{}
			}
			if pages[list]++; pages[list] == 2 { // the third page
				expired++
				return gate.Fault{Code: http.StatusGone}
			}
			return gate.Fault{}
		})
		life := st.now()
		st.kill(life)
		Eventually(ctx, st.isReady).WithArguments(life+1).Should(BeTrue(), s.explain)
		s.remove(ctx, sources[0])
		for n := range 3 {
			s.gone(ctx, build.Secret(s.own(fmt.Sprint("n", n)), "s0", ""))
			delete(versions, placeOfSecret(build.Secret(s.own(fmt.Sprint("n", n)), "s0", "")))
		}
		st.Script(nil)
		Expect(expired).To(BeNumerically(">", 2), "pages: %v", pages)
		secrets := &corev1.SecretList{}
		Expect(s.Admin().List(ctx, secrets, client.MatchingLabels{v1alpha1.LabelInheritedFrom: s.own("payments")})).To(Succeed())
		now := map[string]string{}
		for i := range secrets.Items {
			now[placeOfSecret(&secrets.Items[i])] = secrets.Items[i].ResourceVersion
		}
		Expect(now).To(Equal(versions), "the half list is never acted upon")
	})

	It("FLT-F23 if a parent without cascading is deleted while the operator is down, its child stays with its copies, halted as "+
		"ParentMissing; the SubNamespace is deleted", func(ctx SpecContext) {
		s := st.scene("f23")
		s.create(ctx, build.Root(s.own("payments")))
		s.create(ctx, build.SubNamespace(s.own("payments"), s.own("web")), s.source("s", "1"))
		s.plant(ctx, s.bound(ctx, "payments", "web").Name)
		s.copied(ctx, "web", "s", "1")
		before := build.Namespace(s.own("web"))
		s.exist(ctx, before)
		st.down()
		s.remove(ctx, build.Namespace(s.own("payments")))
		st.up(ctx)
		s.gone(ctx, build.SubNamespace(s.own("payments"), s.own("web")))
		hc := build.Hierarchy(s.own("web"))
		s.says(ctx, hc, func() []metav1.Condition { return hc.Status.Conditions }, v1alpha1.ConditionHalted,
			metav1.ConditionTrue, "ParentMissing: ")
		Consistently(ctx, func(g Gomega) {
			now := build.Namespace(s.own("web"))
			g.Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(now), now)).To(Succeed())
			g.Expect(now.UID).To(Equal(before.UID))
			g.Expect(now.DeletionTimestamp).To(BeNil())
		}).WithTimeout(test.Quiet(soon)).Should(Succeed())
		s.copied(ctx, "web", "s", "1") // a halted namespace keeps its copies
	})

	It("FLT-F30 while the policies' bindings are deleted for 30 s, stories S1 to S3 and S5 to S7 end as without; an admin's edit of a copy "+
		"is reverted", func(ctx SpecContext) {
		bindings := &admissionv1.ValidatingAdmissionPolicyBindingList{}
		Expect(st.Admin().List(ctx, bindings)).To(Succeed())
		bindings.Items = slices.DeleteFunc(bindings.Items, func(b admissionv1.ValidatingAdmissionPolicyBinding) bool {
			return !strings.HasPrefix(b.Name, "warren-")
		})
		Expect(bindings.Items).NotTo(BeEmpty())
		s := st.scene("f30")
		s.bush(ctx)
		s.create(ctx, s.source("s", "1"))
		s.copied(ctx, "n0", "s", "1")
		for i := range bindings.Items {
			Expect(st.Admin().Delete(ctx, bindings.Items[i].DeepCopy())).To(Succeed())
		}
		began := time.Now()
		Eventually(ctx, func() error { // drift that the policies would refuse
			drifted := build.Secret(s.own("n0"), "s", "")
			if err := s.Admin().Get(ctx, client.ObjectKeyFromObject(drifted), drifted); err != nil {
				return err
			}
			drifted.Data["key"] = []byte("drift")
			return s.Admin().Update(ctx, drifted)
		}).Should(Succeed())
		playAll(ctx, st, "bare", endings)
		s.copied(ctx, "n0", "s", "1")
		Consistently(ctx, func() bool { return st.Operator.Process().Running() }).WithTimeout(max(time.Until(began.Add(30*time.Second)),
			time.Second)).Should(BeTrue())
		for i := range bindings.Items {
			binding := bindings.Items[i].DeepCopy()
			binding.ResourceVersion, binding.UID = "", ""
			Expect(st.Admin().Create(ctx, binding)).To(Succeed())
		}
	})

	It("FLT-F35 while garbage collector and namespace controller are stopped, rights of a removed sudoer and of a deleted tenant end; "+
		"objects, and copies of a ResourceDistribution, go later", func(ctx SpecContext) {
		s2, s3, s7 := st.scene("f35a"), st.scene("f35b"), st.scene("f35c")
		for _, s := range []*scene{s2, s3} {
			s.withoutClaims = true
			tenant(ctx, s)
		}
		plainNamespaces(ctx, s7)
		s7.create(ctx, s7.distribution("1"))
		s7.given(ctx, 6, "1")
		Expect(st.ControlPlane.Controllers.Stop()).To(Succeed())
		change(ctx, s2, s2.payments().Object(), func(l *v1alpha1.LNamespace) { l.Spec.Sudoers = build.Users(s2.own("sue")) })
		s2.loses(ctx, s2.own("bob"))
		s3.remove(ctx, s3.payments().Object())
		s3.loses(ctx, s3.own("bob"))
		s7.remove(ctx, s7.distribution("1"))
		s3.exist(ctx, build.Namespace(s3.own("payments"))) // not emptied while its controller is down
		Expect(st.ControlPlane.Controllers.Start()).To(Succeed())
		Expect(st.ControlPlane.Ready(ctx)).To(Succeed())
		s2.gone(ctx, build.ClusterRole("warren:self:"+s2.own("bob")))
		s3.gone(ctx, build.Namespace(s3.own("payments")), s3.payments().Object())
		s7.given(ctx, 0, "")
		for _, s := range []*scene{s2, s3} {
			Expect(s.maySudo(ctx, s.own("bob"))).To(BeFalse())
		}
	})

	It("FLT-F45 a running operator ignores a removed, broken or replaced configuration file; a start with a bad one ends with status 1, "+
		"names the file, and changes nothing", func(ctx SpecContext) {
		file := st.Operator.ConfigFile
		valid, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(os.WriteFile(file, valid, 0o600)).To(Succeed()) })
		s := st.scene("f45")
		s.bush(ctx)
		number := atomic.Int32{}
		works := func() { // with the configuration with which it was started
			GinkgoHelper()
			name := fmt.Sprint("s", number.Add(1))
			s.create(ctx, s.source(name, "1"))
			for _, child := range []string{"n0", "n1", "n2"} {
				s.copied(ctx, child, name, "1")
			}
		}
		for what, spoil := range map[string]func() error{
			"removed":      func() error { return os.Remove(file) },
			"half written": func() error { return os.WriteFile(file, valid[:len(valid)/2], 0o600) },
			"a directory":  func() error { return errors.Join(os.RemoveAll(file), os.Mkdir(file, 0o700)) },
		} {
			life := st.now()
			Expect(spoil()).To(Succeed(), what)
			works()
			mark, err := st.Mark(ctx)
			Expect(err).NotTo(HaveOccurred())
			st.down()
			Expect(st.Operator.Process().Start()).To(Succeed())
			Eventually(ctx, st.Operator.Process().Done()).Should(BeClosed(), what)
			Expect(st.Operator.Process().ExitCode()).To(Equal(1), what)
			Expect(st.Operator.Process().LogTail(3)).To(ContainSubstring(file), what)
			Expect(st.Writes(ctx, mark)).To(BeEmpty(), "%s: a start that failed has changed nothing", what)
			Expect(errors.Join(os.RemoveAll(file), os.WriteFile(file, valid, 0o600))).To(Succeed())
			st.up(ctx)
			Expect(st.now()).To(Equal(life + 1))
			works()
		}
		life := st.now()
		swaps := time.NewTicker(10 * time.Millisecond)
		defer swaps.Stop()
		for n := range 100 {
			<-swaps.C
			Expect(os.WriteFile(file, append(slices.Clone(valid), fmt.Sprintf("# %d\n", n)...), 0o600)).To(Succeed())
		}
		works()
		Expect(st.now()).To(Equal(life))
		st.kill(life)
		Eventually(ctx, st.isReady).WithArguments(life + 1).Should(BeTrue())
		works()
	})
})
