package tenants_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// events are all entries of the audit log, including those of requests that have not ended.
func (f *fixture) events() []auditv1.Event {
	GinkgoHelper()
	text, err := os.ReadFile(f.AuditLog())
	Expect(err).NotTo(HaveOccurred())
	var events []auditv1.Event
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break // still being written
		}
		event := auditv1.Event{}
		Expect(json.Unmarshal([]byte(line), &event)).To(Succeed(), line)
		events = append(events, event)
	}
	return events
}

// sudoUses is what docs/guides/audit/sudo.jq finds: time, who, tenant, verb, path, status, reason.
func sudoUses(events []auditv1.Event) []string {
	var lines []string
	for _, e := range events {
		if e.ImpersonatedUser == nil {
			continue
		}
		for _, group := range e.ImpersonatedUser.Groups {
			if tenant, ok := strings.CutSuffix(group, "-sudoers"); ok {
				lines = append(lines, strings.Join([]string{
					e.RequestReceivedTimestamp.UTC().Format(metav1.RFC3339Micro), e.User.Username, tenant, e.Verb, e.RequestURI,
					fmt.Sprint(e.ResponseStatus.Code), strings.Join(e.ImpersonatedUser.Extra["tenancy.warren.dev/reason"], "; "),
				}, "\t"))
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// withoutTime cuts the first column off.
func withoutTime(lines []string) []string {
	var rest []string
	for _, line := range lines {
		_, after, _ := strings.Cut(line, "\t")
		rest = append(rest, after)
	}
	return rest
}

// queried runs a query of docs/guides/audit over the log, as `jq -rf QUERY audit.log | sort -u` does.
func (f *fixture) queried(ctx context.Context, jq, query string) []string {
	GinkgoHelper()
	root, err := devcluster.Root()
	Expect(err).NotTo(HaveOccurred())
	out, err := exec.CommandContext(ctx, jq, "-rf", filepath.Join(root, "docs/guides/audit", query), f.AuditLog()).Output()
	Expect(err).NotTo(HaveOccurred())
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	slices.Sort(lines)
	return slices.Compact(lines)
}

var _ = Describe("the audit log that docs/guides/audit asks for", func() {
	It("tells who used sudo, when, for what and why, and who listed whom, and holds no Secret", func(ctx SpecContext) {
		root, err := devcluster.Root()
		Expect(err).NotTo(HaveOccurred())
		// The last of two flags counts.
		policy := []string{"--audit-policy-file", filepath.Join(root, "docs/guides/audit/policy.yaml")}
		f := of(ownWorld(ctx, devcluster.Options{ControlPlane: controlplane.Options{APIServerArgs: policy}}, "a01"), "a01")
		payments, shop, bob, otto, value := f.own("payments"), f.own("shop"), f.own("bob"), f.own("otto"), "a value that nobody else has"
		f.settle(ctx, f.payments(), f.shop())

		group := []string{f.own("payments-sudoers")}
		because := f.Impersonate(bob, rest.ImpersonationConfig{
			UserName: bob, Groups: group, Extra: map[string][]string{v1alpha1.Domain + "/reason": {"INC-42"}},
		})
		allowed(ctx, because, making(build.Secret(payments, "db", value), "Secret"))
		allowed(ctx, f.becoming("otto", "warren:sudo:"+payments, group...), podsIn(payments))
		denied(ctx, f.sudo("bob", "payments"), podsIn(shop))
		denied(ctx, f.as("bob"), secretsIn(payments))
		denied(ctx, f.sudo("carol", "payments"), secretsIn(payments))
		open, err := f.sudo("bob", "payments").Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(payments))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(open.Stop)
		f.set(ctx, f.as("mia"), payments, sudoers(build.Users(bob)...))

		pods := func(namespace string) string { return "/api/v1/namespaces/" + namespace + "/pods" }
		var found []string
		Eventually(func() []string { // a request is in the log when it has ended, a moment after its answer
			found = sudoUses(f.events())
			return withoutTime(found)
		}).WithContext(ctx).Should(And(ContainElements(
			strings.Join([]string{bob, payments, "create", "/api/v1/namespaces/" + payments + "/secrets", "201", "INC-42"}, "\t"),
			strings.Join([]string{otto, payments, "list", pods(payments), "200", ""}, "\t"),
			strings.Join([]string{bob, payments, "list", pods(shop), "403", ""}, "\t"),
		), ContainElement(HavePrefix(strings.Join([]string{bob, payments, "watch", ""}, "\t")))), "the watch while it is open")
		Expect(found).NotTo(ContainElement(ContainSubstring(f.own("carol"))))
		Eventually(f.listed).WithContext(ctx).Should(ContainElement(And(HavePrefix(f.own("mia")+" patch "+payments), ContainSubstring(bob))))

		log, err := os.ReadFile(f.AuditLog())
		Expect(err).NotTo(HaveOccurred())
		Expect(string(log)).NotTo(Or(ContainSubstring(value), ContainSubstring(base64.StdEncoding.EncodeToString([]byte(value)))))

		jq, err := exec.LookPath("jq")
		if err != nil {
			AddReportEntry("the queries themselves did not run", err)
			return
		}
		Expect(f.queried(ctx, jq, "sudo.jq")).To(Equal(found))
		Expect(f.queried(ctx, jq, "lists.jq")).To(ContainElement(
			HaveSuffix(strings.Join([]string{f.own("mia"), "patch", payments, `{"sudoers":[{"kind":"User","name":"` + bob + `"}]}`}, "\t"))))
	})
})

// listed is what docs/guides/audit/lists.jq finds, without the time.
func (f *fixture) listed() []string {
	GinkgoHelper()
	var lines []string
	for _, e := range f.events() {
		if e.ObjectRef != nil && e.ObjectRef.Resource == "lnamespaces" && e.ObjectRef.Subresource == "" && e.RequestObject != nil {
			lines = append(lines, fmt.Sprintf("%s %s %s %s", e.User.Username, e.Verb, e.ObjectRef.Name, e.RequestObject.Raw))
		}
	}
	return lines
}
