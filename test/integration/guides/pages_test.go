package guides_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/internal/billing/programs"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// The pages in this order are played one after another in one playground. Each begins with the tenant of the README. PROP-E7 is the page
// about propagation.
var playedPages = []string{
	"README.md",
	"docs/concepts.md",
	"docs/guides/tenants.md",
	"docs/guides/propagation.md",
	"docs/guides/hierarchy.md",
	"docs/guides/sudo.md",
	"docs/guides/who-can.md",
	"docs/guides/distribution.md",
	"docs/guides/budgets.md",
	"docs/guides/backup.md",
	"docs/guides/troubleshooting.md",
	"docs/guides/billing.md",
	"docs/guides/sudo-on-request.md",
}

// playgroundConfiguration allows the keys of the example of a SubNamespace.
const playgroundConfiguration = `apiVersion: config.tenancy.warren.dev/v1alpha1
kind: OperatorConfiguration
subNamespaces:
  labels: [app]
  annotations: [example.com/contact]
`

// playgroundBilling names the file of a ledger.
const playgroundBilling = `billing:
  driver: sqlite
  sqlite: {path: %q}
  flushInterval: 1s
`

var _ = Describe("the commands of the pages, in a playground", Ordered, func() {
	var playground *devcluster.World

	BeforeAll(func(ctx SpecContext) {
		ledger := filepath.Join(GinkgoT().TempDir(), "billing.db")
		w, err := devcluster.Start(ctx, devcluster.Options{
			Webhooks: true,
			Components: []string{"config/components/distribution", "config/components/budgets", "config/components/requests",
				"config/components/billing-sqlite"},
			ControlPlane: controlplane.Options{Users: map[string][]string{devcluster.ExporterAccount: devcluster.ExporterGroups()}},
			Operator:     devcluster.OperatorOptions{Config: playgroundConfiguration + fmt.Sprintf(playgroundBilling, ledger)},
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		w.Plugins = world.Plugins
		playground = w
		By("the clone's samples, which some commands name")
		root, err := devcluster.Root()
		Expect(err).NotTo(HaveOccurred())
		home := filepath.Join(w.Dir, "home")
		Expect(os.MkdirAll(home, 0o700)).To(Succeed())
		Expect(os.Symlink(filepath.Join(root, "config"), filepath.Join(home, "config"))).To(Succeed())
		By("the exporter, the configuration and the program manager, as the playground has them")
		manager, err := devcluster.BuildManager(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(devcluster.BuildBilling(ctx, programs.Billing)).To(Succeed())
		exporter, _, err := devcluster.StartExporter(ctx, w, manager, w.Operator.ConfigFile, filepath.Join(w.Dir, "exporter.log"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(exporter.Stop)
		Expect(os.Mkdir(filepath.Join(home, ".dev"), 0o700)).To(Succeed())
		Expect(os.Symlink(w.Operator.ConfigFile, filepath.Join(home, ".dev", "config.yaml"))).To(Succeed())
		Expect(os.Symlink(manager, filepath.Join(w.Plugins, "manager"))).To(Or(Succeed(), MatchError(os.ErrExist)))
	})

	numbers := map[string]string{"docs/guides/hierarchy.md": "HIER-P19 ", "docs/guides/propagation.md": "PROP-E7 ",
		"docs/guides/sudo-on-request.md": "REQ-P5 "}
	for _, page := range playedPages {
		It(numbers[page]+"print what "+page+" shows", func(ctx SpecContext) {
			steps := stepsOf(page)
			Expect(steps).NotTo(BeEmpty())
			play(ctx, playground, steps)
		})
	}

	It("accept the examples of the API reference", func(ctx SpecContext) {
		examples, err := filepath.Glob("../../../docs/reference/examples/*.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(examples).To(HaveLen(6))
		for _, example := range examples {
			out, problems, code := playground.Kubectl(ctx, "admin", "apply", "--server-side", "--force-conflicts", "--dry-run=server",
				"--validate=strict", "-f", example)
			if filepath.Base(example) == "sudorequest.yaml" { // the schema accepts it, and then the policy refuses another one's name
				Expect(problems).To(ContainSubstring("a new request has no decisions"))
				continue
			}
			Expect(code).To(BeZero(), "%s: %s%s", example, out, problems)
		}
	})
})

var _ = It("has every page with a console block among the pages that are played", func() {
	root, err := devcluster.Root()
	Expect(err).NotTo(HaveOccurred())
	played := append([]string{"docs/guides/from-hnc.md", "docs/guides/from-accurate.md", "docs/guides/from-capsule.md"}, playedPages...)
	var found []string
	Expect(filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if file == filepath.Join(root, ".dev") { // other suites make and remove folders there
			return filepath.SkipDir
		}
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".md" {
			return err
		}
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(text), "```console\n") {
			page, _ := filepath.Rel(root, file)
			found = append(found, page)
		}
		return err
	})).To(Succeed())
	slices.Sort(found)
	slices.Sort(played)
	Expect(found).To(Equal(played))
})
