// Package budget_test runs the cases of the specification's page quota against a real control plane, with the quota controller of
// Kubernetes.
package budget_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/suite"
)

func TestBudget(t *testing.T) { suite.Run(t, "budget") }

const component, distribution = "config/components/budgets", "config/components/distribution"

// world is what all cases share that stop no process.
var world *devcluster.World

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	plugins, err := devcluster.BuildPlugins(ctx)
	Expect(err).NotTo(HaveOccurred())
	w := startWorld(ctx, devcluster.Options{Webhooks: true, Components: []string{distribution}})
	w.Plugins = plugins
	return w.Bytes()
}, func(data []byte) {
	var err error
	world, err = devcluster.Connect(data)
	Expect(err).NotTo(HaveOccurred())
})

// telling finds the metrics that show what the operator does.
var telling = regexp.MustCompile(
	`(?m)^(warren_budget|watchset_informers|controller_runtime_(active|reconcile_(total|err))|workqueue_(depth|unfin)).*$`)

// A failure shows whether the operator was at work.
var _ = ReportAfterEach(func(report SpecReport) {
	if !report.Failed() || world == nil {
		return
	}
	AddReportEntry("log of the shared operator", ReportEntryVisibilityNever, world.Operator.Log())
	answer, err := http.Get(world.Operator.MetricsURL)
	if err != nil {
		AddReportEntry("the shared operator doesn't answer", err)
		return
	}
	text, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	AddReportEntry("metrics of the shared operator", strings.Join(telling.FindAllString(string(text), -1), "\n"))
})

// startWorld starts a World with component budgets, and stops it at the end of the node.
func startWorld(ctx context.Context, options devcluster.Options) *devcluster.World {
	GinkgoHelper()
	options.Components = append(options.Components, component)
	w, err := devcluster.Start(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	return w
}

// names is how many names unique has returned in this process.
var names int

// unique returns a name that no other case has.
func unique(name string) string {
	names++
	return fmt.Sprintf("%s-%d-%d", name, GinkgoParallelProcess(), names)
}
