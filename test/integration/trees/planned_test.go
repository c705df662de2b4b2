package trees_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/internal/preview"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// planned is what config diff says of a cluster under a configuration.
func (c cluster) planned(ctx context.Context, config string) preview.Plan {
	GinkgoHelper()
	var plan preview.Plan
	Expect(json.Unmarshal([]byte(c.done(ctx, controlplane.Admin, "config", "diff", config, "-o", "json")), &plan)).To(Succeed())
	return plan
}

// lines are the writes of a plan: verb, kind, namespace and name.
func lines(plan preview.Plan) []string {
	all := []string{}
	for _, w := range plan.Writes {
		all = append(all, strings.Join([]string{string(w.Verb), w.Kind, w.Namespace, w.Name}, " "))
	}
	slices.Sort(all)
	return all
}

// configuration writes a configuration file.
func configuration(body string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "config.yaml")
	text := "apiVersion: config.tenancy.warren.dev/v1alpha1\nkind: OperatorConfiguration\n" + body
	Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	return path
}

// planLike are the writes to Namespaces and to what is propagated, in the words of a plan. Those of Kubernetes itself don't count.
func planLike(requests []audit.Request) []string {
	all := []string{}
	for _, r := range requests {
		if strings.Contains(r.User, "system:kube-") || strings.HasPrefix(r.User, "system:serviceaccount:kube-system:") {
			continue
		}
		if line := planLine(r); line != "" && r.Namespace != "warren-system" && r.Namespace != "kube-system" {
			all = append(all, line)
		}
	}
	return all
}

var kindOfPlan = map[string]string{
	"namespaces": "Namespace", "secrets": "Secret", "configmaps": "ConfigMap", "rolebindings": "RoleBinding",
}

// planLine is a request as a line of a plan; "" where it has changed nothing, or a subresource.
func planLine(r audit.Request) string {
	verb := map[string]string{"create": "create", "update": "update", "patch": "update", "delete": "delete"}[r.Verb]
	if verb == "" || kindOfPlan[r.Resource] == "" || r.Subresource != "" || r.Code >= 300 {
		return ""
	}
	namespace := r.Namespace
	if r.Resource == "namespaces" {
		namespace = ""
	}
	return fmt.Sprintf("%s %s %s %s", verb, kindOfPlan[r.Resource], namespace, r.Name)
}
