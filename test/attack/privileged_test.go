package attack_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

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

// playground are the namespaces of the requests: two of a tree, one in no tree, an instance, a privileged one, and two that don't exist
// yet.
var playground = []string{"root", "child", "plain", "inst", "monitors", "new-1", "new-2"}

var playgroundGiven = []request{
	create("namespace root", `{metadata: {labels: {$D/type: root, `+enforces+`: baseline}, annotations: {$D/lnamespace-uid: u}}}`),
	create("namespace child", `{metadata: {labels: {$D/parent: root, $D/bound: "true"}}}`),
	create("namespace plain", ``),
	create("namespace tmpl", ours("$D/type", "template")),
	create("namespace inst", ours("$D/template", "tmpl")),
	create("namespace monitors", privileged),
	create("rolebinding root/bobs", bindingTo("cluster-admin", "bob")),
	create("rolebinding child/bobs", bindingTo("cluster-admin", "bob")),
}

// choices are the labels and annotations that a request may change, each with the values that it may take.
var choices = []struct {
	field, key string
	values     []string
}{
	{"labels", "$D/type", []string{"root", "null"}},
	{"labels", "$D/parent", []string{"root", "plain", "nowhere", "null", "null"}},
	{"labels", "$D/template", []string{"tmpl", "null"}},
	{"labels", "$D/bound", []string{`"true"`, "null"}},
	{"labels", "$D/released", []string{`"true"`, `"true"`, "null", "x"}},
	{"labels", "$D/protected", []string{`"true"`, "null"}},
	{"labels", enforces, []string{"privileged", "baseline", "restricted", "null"}},
	{"labels", version, []string{"v1.0", "latest", "null"}},
	{"annotations", "$D/adopt", []string{`"true"`, "null"}},
	{"annotations", "$D/lnamespace-uid", []string{"u", "null"}},
	{"annotations", "$D/inherited", []string{enforces, `"` + enforces + "," + version + `"`, "null"}},
}

// anyRequest is what the thief of the token sends next.
func anyRequest(draw *rand.Rand) request {
	name := playground[draw.IntN(len(playground))]
	target := "namespace " + name
	fields := map[string][]string{}
	for range 1 + draw.IntN(4) {
		c := choices[draw.IntN(len(choices))]
		if strings.Contains(strings.Join(fields[c.field], ","), c.key+":") {
			continue // a patch has each key at most once
		}
		fields[c.field] = append(fields[c.field], c.key+": "+c.values[draw.IntN(len(c.values))])
	}
	body := fmt.Sprintf(`{metadata: {labels: {%s}, annotations: {%s}}}`, strings.Join(fields["labels"], ", "),
		strings.Join(fields["annotations"], ", "))
	switch draw.IntN(20) {
	case 0, 1:
		return create(target, strings.ReplaceAll(body, ": null", `: "1"`))
	case 2:
		return remove(target)
	case 3, 4, 5, 6:
		return create("rolebinding "+name+"/helping", marked("access: users", bindingTo("cluster-admin", mallory.user)))
	}
	return merge(target, body)
}

var _ = Describe("the token and pod security", func() {
	It("SEC-O38 with cluster default baseline of pod security, op sends 400 random requests on namespaces, their keys and bindings; no "+
		"user whom one helped gets a privileged pod", func(ctx SpecContext) {
		f := &fixture{}
		admission := filepath.Join(GinkgoT().TempDir(), "admission.yaml")
		Expect(os.WriteFile(admission, []byte(baseline), 0o600)).To(Succeed())
		var err error
		f.World, err = devcluster.Start(ctx, devcluster.Options{
			ControlPlane:    controlplane.Options{Users: users(), APIServerArgs: []string{"--admission-control-config-file", admission}},
			WithoutOperator: true,
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(f.Stop)
		f.given(ctx, admin, playgroundGiven...)

		draw := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 0))
		var story []string
		helped := 0
		for range 400 {
			next := anyRequest(draw)
			if err := next.send(ctx, f.caller(op)); err != nil {
				continue
			}
			story = append(story, next.what)
			if strings.HasPrefix(next.what, "create rolebinding") {
				helped++
			}
			Expect(f.breakOut(ctx, nameIn(next))).To(BeEmpty(), "after\n%s", strings.Join(story, "\n"))
		}
		Expect(f.breakOut(ctx, playground...)).To(BeEmpty(), "in the end, after\n%s", strings.Join(story, "\n"))
		AddReportEntry("requests that were let through, and bindings among them", []int{len(story), helped},
			ReportEntryVisibilityFailureOrVerbose)
		// The requests are random. If too few of them succeeded, the search would have tried nothing.
		Expect(len(story)).To(BeNumerically(">", 20), "the token could do a lot")
		Expect(helped).To(BeNumerically(">", 0), "and has helped somebody")

		// Without the wall, such requests do lead to a privileged pod: the test can fail.
		f.open(ctx)
		Eventually(ctx, func(ctx context.Context) string {
			next := anyRequest(draw)
			_ = next.send(ctx, f.caller(op))
			return f.breakOut(ctx, nameIn(next))
		}).ShouldNot(BeEmpty(), "somebody gets a privileged pod")
	})
})

// nameIn is the name of the namespace that a request of anyRequest is about.
func nameIn(r request) string {
	_, name, _ := strings.Cut(r.target, " ")
	name, _, _ = strings.Cut(name, "/")
	return name
}

// breakOut tries, as each user whom the token may have helped, to make the namespaces privileged, and rehearses a privileged pod there.
// It returns the first namespace where the pod would be created.
func (f *fixture) breakOut(ctx context.Context, names ...string) string {
	for _, who := range []actor{mallory, {user: "bob"}} {
		c := f.caller(who)
		for _, name := range names {
			_ = merge("namespace "+name, privileged).send(ctx, c)
			_ = merge("namespace "+name, ours("$D/released", "null")).send(ctx, c)
			if create("pod "+name+"/breakout", privilegedPod).send(ctx, c.rehearsing()) == nil {
				return name
			}
		}
	}
	return ""
}
