package fault_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// flaw makes one function of a controller dereference nil when it is called for a certain object.
type flaw struct{ file, function, when string }

// flaws are by the name of the controller.
var flaws = map[string]flaw{
	"lnamespace":       {"lnamespace/reconciler.go", "func (r *Reconciler) Reconcile(", `req.Name == "f43-lnamespace"`},
	"access":           {"access/gather.go", "func (r *Reconciler) readTenant(", `name == "f43-access"`},
	"subnamespace":     {"subnamespace/reconciler.go", "func (r *Reconciler) Reconcile(", `req.Name == "f43-subnamespace"`},
	"hierarchy":        {"hierarchy/reconciler.go", "func (r *Reconciler) Reconcile(", `req.Name == "f43-hierarchy"`},
	"hierarchy-report": {"hierarchy/report.go", "func (r *Reporter) Reconcile(", `req.Namespace == "f43-report"`},
	"sight":            {"ownrights/reconciler.go", "func (r *Reconciler) Reconcile(", `req.Name == "f43-ownrights"`},
}

// panicking builds an operator with the flaws.
func panicking(ctx context.Context) (path string) {
	GinkgoHelper()
	root, err := devcluster.Root()
	Expect(err).NotTo(HaveOccurred())
	texts := map[string]string{}
	for _, f := range flaws {
		file := filepath.Join("controllers", f.file)
		text, err := os.ReadFile(filepath.Join(root, file))
		Expect(err).NotTo(HaveOccurred())
		before, after, found := strings.Cut(string(text), "\n"+f.function)
		signature, body, _ := strings.Cut(after, "{\n")
		Expect(found).To(BeTrue(), "%s has no %s", f.file, f.function)
		texts[file] = before + "\n" + f.function + signature + "{\n\tif " + f.when + " {\n\t\t*(*int)(nil) = 0\n\t}\n" + body
	}
	path, err = devcluster.BuildManagerWith(ctx, "manager-panicking", texts)
	Expect(err).NotTo(HaveOccurred())
	return path
}

// panics are the times at which a controller recovered from a panic, and the objects, from the operator's log.
func (s *stage) panics(controller string) (times []time.Time, objects map[string]bool) {
	objects = map[string]bool{}
	for line := range strings.Lines(s.Operator.Log()) {
		var entry struct{ TS, Controller, Error, Namespace, Name string }
		if json.Unmarshal([]byte(line), &entry) != nil || entry.Controller != controller || !strings.Contains(entry.Error, "[recovered]") {
			continue
		}
		at, err := time.Parse(time.RFC3339, entry.TS)
		if err != nil {
			continue
		}
		times, objects[entry.Namespace+"/"+entry.Name] = append(times, at), true
	}
	return times, objects
}

var _ = Describe("an operator with a defect that one object meets", func() {
	It("FLT-F43 a panic in the reconcile of one object, in six controllers, is counted once an attempt and backs off; the operator stays "+
		"Ready and reconciles all other objects", func(ctx SpecContext) {
		st := bareStage(ctx, withConfiguration)
		DeferCleanup(func() { st.Operator = nil }) // World.Stop would blame it for its panics
		st.StartOperatorWith(ctx, st.World, devcluster.OperatorOptions{Manager: panicking(ctx), Config: configuration})
		s, neighbour := st.scene("f43"), st.scene("f43n")
		s.withoutClaims, neighbour.withoutClaims = true, true
		pid := st.Operator.Process().PID()

		family(ctx, s)
		s.create(ctx, build.Tenant(s.own("lnamespace")).Users("alice").Object(), build.Tenant(s.own("access")).Users("alice").Object(),
			build.SubNamespace(s.own("payments"), s.own("subnamespace")), s.source("s", "1"))
		for _, child := range []string{"hierarchy", "report", "ownrights"} {
			s.create(ctx, build.Child(s.own(child), s.own("payments")))
		}
		for controller := range flaws {
			Eventually(func() int { return int(st.panicsCounted(ctx, controller)) }).Should(BeNumerically(">", 2), controller)
		}

		for _, child := range []string{"n0", "n1", "n2"} { // beside the object, in its own tree
			s.copied(ctx, child, "s", "1")
		}
		family(ctx, neighbour)
		removesSudoer(ctx, neighbour)
		sources(ctx, neighbour)
		neighbour.create(ctx, build.SubNamespace(neighbour.own("payments"), neighbour.own("late")))
		neighbour.bound(ctx, "payments", "late")

		for controller := range flaws {
			Eventually(ctx, func(g Gomega) {
				times, objects := st.panics(controller)
				g.Expect(objects).To(HaveLen(1), "%s: %v", controller, objects)
				g.Expect(st.panicsCounted(ctx, controller)).To(BeEquivalentTo(len(times)), "%s: one a try", controller)
				g.Expect(times[len(times)-1].Sub(times[len(times)-2])).To(BeNumerically(">=", 10*time.Second), "%s backs off", controller)
				g.Expect(len(times)).To(BeNumerically("<=", 20), "%s: %v", controller, times)
			}).Should(Succeed())
		}
		Expect(process.HTTPOK(nil, st.Operator.HealthURL+"/healthz")(ctx)).To(Succeed())
		Expect(process.HTTPOK(nil, st.Operator.HealthURL+"/readyz")(ctx)).To(Succeed())
		Expect(st.Operator.Process().PID()).To(Equal(pid))
		AddReportEntry("FLT-F43", fmt.Sprint(slices.Sorted(maps.Keys(flaws))))
	})
})

// panicsCounted is the number of a controller's panics in the operator's metrics.
func (s *stage) panicsCounted(ctx context.Context, controller string) float64 {
	GinkgoHelper()
	metrics, err := s.Operator.Metrics(ctx)
	Expect(err).NotTo(HaveOccurred())
	return metrics.Value("controller_runtime_reconcile_panics_total", map[string]string{"controller": controller})
}
