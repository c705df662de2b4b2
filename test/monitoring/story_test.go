package monitoring_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// story is what the targets said in the course of a day: frames of a cluster that is well, then in trouble, then well again.
type story struct{ calm, trouble, healed []scrape }

// tell plays the story on the cluster.
func (c *cluster) tell() story {
	c.Helper()
	var s story
	s.calm = c.calm()
	s.trouble = c.trouble()
	s.healed = c.heal()
	return s
}

func (c *cluster) calm() (frames []scrape) {
	c.Helper()
	// Without an operator, the API server can't call the webhooks. From now on it exposes their metrics.
	if _, _, code := c.world.Kubectl(c.Context(), controlplane.Admin, "apply", "-f", filepath.Join("testdata", "tenants.yaml")); code == 0 {
		c.Fatal("an LNamespace was made although no webhook answers")
	}
	c.startReplicas()
	c.startExporter()
	frames = append(frames, c.until("a leader", func(s scrape) bool {
		return s.total("leader_election_master_status", "name", "warren") == 1 && s.total("warren_webhook_ca_synced") > 0
	}))
	c.apply("tenants.yaml")
	frames = append(frames, c.until("three tenants", func(s scrape) bool { return s.total("warren_lnamespaces", "ready", "True") == 2*3 }))
	frames = append(frames, c.until("a budget", func(s scrape) bool { return s.total("warren_budget_hard", "resource", "pods") == 10 }))
	c.apply("trees.yaml")
	frames = append(frames,
		c.until("five sub-namespaces", func(s scrape) bool { return s.total("warren_subnamespaces", "ready", "True") == 2*5 }))
	c.apply("sources.yaml")
	frames = append(frames, c.until("copies", func(s scrape) bool {
		return s.total("warren_propagation_copies", "kind", "Secret") >= 3 && s.total("warren_propagation_copies", "kind", "ConfigMap") >= 3 &&
			s.total("warren_distribution_copies", "state", "current") >= 1 && s.total("warren_hierarchy_moves_total", "result", "done") >= 1
	}))
	c.kubectl("patch", "hierarchyconfiguration", "hierarchy", "--namespace=legacy", "--type=merge", `--patch={"spec":{"parent":"shop"}}`)
	c.kubectl("patch", "lnamespace", "payments", "--type=merge", `--patch={"spec":{"users":[{"kind":"User","name":"alice"}]}}`)
	return append(frames, c.until("a move and a revocation", func(s scrape) bool {
		return s.total("warren_hierarchy_settle_seconds_count") >= 2 && s.total("warren_access_revocation_seconds_count") >= 1 &&
			s.total("warren_hierarchy_authority_reviews_total") > 0 && s.total("warren_billing_last_diff_timestamp_seconds") > 0
	}))
}

func (c *cluster) trouble() (frames []scrape) {
	c.Helper()
	c.apply("trouble.yaml")
	frames = append(frames, c.until("what keeps out copies and rights", func(s scrape) bool {
		for name, pairs := range map[string][]string{
			"warren_access_conflicts": nil, "warren_sudo_groups_bound_elsewhere": nil, "warren_user_role_findings": {"severity", "danger"},
			"warren_propagation_conflicts": nil, "warren_propagation_rejected": nil, "warren_propagation_limited": nil,
			"warren_hierarchy_conditions": {"type", "Halted"}, "warren_distribution_copies": {"state", "conflict"},
			"warren_lnamespaces": {"ready", "False"},
		} {
			if s.total(name, pairs...) == 0 {
				c.Logf("waiting for %s", name)
				return false
			}
		}
		return true
	}))

	c.runRunbooks()

	// One policy is deleted, so that people can change copies. Somebody changes copies again and again.
	c.saved = []string{c.save("clusterrole", "warren-kinds-configured")}
	c.saved = append(c.saved, c.save("validatingadmissionpolicybinding", "warren-copy"))
	c.kubectl("delete", "validatingadmissionpolicybinding", "warren-copy")
	changes := 0
	for _, repairs := range []float64{1, 10} {
		frames = append(frames, c.until("copies that are changed in a loop", func(s scrape) bool {
			changes++
			patch := `--patch={"stringData":{"changed":"` + strings.Repeat("x", changes) + `"}}`
			for _, namespace := range []string{"pay-db", "pay-web"} {
				c.world.Kubectl(c.Context(), controlplane.Admin, "patch", "secret", "registry", "--namespace="+namespace, "--type=merge", patch)
			}
			return s.total("warren_propagation_drift_total") >= repairs
		}))
	}

	// A right of the operator is removed. The operator starts again, beside a replica with another configuration file.
	c.stop(1)
	c.stop(0)
	c.kubectl("patch", "clusterrole", "warren-kinds-configured", "--type=json", "--patch="+c.rulesWithoutConfigMaps())
	for range 3 {
		if _, _, code := c.world.Kubectl(c.Context(), controlplane.Admin, "create", "-f", filepath.Join("testdata", "trouble.yaml")); code == 0 {
			c.Fatal("objects were made although no webhook answers")
		}
	}
	frames = append(frames, c.scrape())
	c.start(0, configuration("ledger.db"))
	c.start(1, configuration("ledger.db")+"concurrency: 8\n")
	frames = append(frames, c.until("a missing policy and a missing right", func(s scrape) bool {
		return s.total("warren_policy_gap", "policy", "copy") > 0 && s.total("warren_propagation_unobserved") > 0 &&
			s.total("warren_config_info") == 2
	}))
	c.stop(1)
	return append(frames, c.scrape())
}

// runRunbooks runs the commands that the runbooks tell people to run: each must work, whatever is wrong.
func (c *cluster) runRunbooks() {
	c.Helper()
	page, err := os.ReadFile("../../docs/runbooks/README.md")
	if err != nil {
		c.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "kubectl get ") && !strings.HasPrefix(line, "kubectl describe ") && !strings.HasPrefix(line,
			"kubectl warren ") {
			continue
		}
		command := exec.CommandContext(c.Context(), "bash", "-c", "set -o pipefail; "+line)
		command.Env = append(os.Environ(), "KUBECONFIG="+c.world.Kubeconfig(controlplane.Admin),
			"PATH="+filepath.Dir(c.world.KubectlPath)+":"+c.world.Plugins+":"+os.Getenv("PATH"))
		answer, err := command.CombinedOutput()
		// The exit status of these two reports what they found.
		if err != nil && !strings.Contains(line, "warren doctor") && !strings.Contains(line, "warren vet") {
			c.Errorf("%s: %v\n%s", line, err, answer)
		}
	}
}

// rulesWithoutConfigMaps is a patch that takes ConfigMaps from the rules of ClusterRole warren-kinds-configured.
func (c *cluster) rulesWithoutConfigMaps() string {
	c.Helper()
	var role struct {
		Rules []map[string]any `json:"rules"`
	}
	if err := json.Unmarshal([]byte(c.kubectl("get", "clusterrole", "warren-kinds-configured", "-o", "json")), &role); err != nil {
		c.Fatal(err)
	}
	for _, rule := range role.Rules {
		var kept []any
		for _, resource := range rule["resources"].([]any) {
			if resource != "configmaps" {
				kept = append(kept, resource)
			}
		}
		rule["resources"] = append(kept, "podtemplates") // a rule without resources is invalid
	}
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/rules", "value": role.Rules}})
	if err != nil {
		c.Fatal(err)
	}
	return string(patch)
}

// save returns an object as it can be made again.
func (c *cluster) save(kind, name string) string {
	c.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(c.kubectl("get", kind, name, "-o", "json")), &object); err != nil {
		c.Fatal(err)
	}
	for _, key := range []string{"uid", "resourceVersion", "creationTimestamp", "generation"} {
		delete(object["metadata"].(map[string]any), key)
	}
	text, err := json.Marshal(object)
	if err != nil {
		c.Fatal(err)
	}
	return string(text)
}

// heal takes back what trouble has done.
func (c *cluster) heal() []scrape {
	c.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", "trouble.yaml"))
	if err != nil {
		c.Fatal(err)
	}
	c.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", path)
	c.stop(0)
	for _, object := range c.saved {
		if _, problems, code := c.world.KubectlWith(c.Context(), controlplane.Admin, object, "apply", "--server-side", "--force-conflicts",
			"-f", "-"); code != 0 {
			c.Fatal(problems)
		}
	}
	c.start(0, configuration("ledger.db"))
	c.start(1, configuration("ledger.db"))
	return []scrape{c.until("that all is well", func(s scrape) bool {
		for name, pairs := range map[string][]string{
			"warren_policy_gap": nil, "warren_access_conflicts": nil, "warren_sudo_groups_bound_elsewhere": nil, "warren_user_role_findings": nil,
			"warren_propagation_conflicts": nil, "warren_propagation_rejected": nil, "warren_propagation_limited": nil,
			"warren_propagation_unobserved": nil,
			"warren_hierarchy_conditions":   {"type", "Halted"}, "warren_distribution_copies": {"state", "conflict"},
			"warren_lnamespaces": {"ready", "False"},
		} {
			if s.total(name, pairs...) != 0 {
				c.Logf("waiting for the end of %s", name)
				return false
			}
		}
		return s.total("warren_webhook_ca_synced") > 0 && s.total("up", "job", operatorJob) == 2
	})}
}
