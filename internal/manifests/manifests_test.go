package manifests

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/configfile"
)

// configured returns the default configuration with the sections of text, such as propagation with other kinds.
func configured(t *testing.T, text string) *config.OperatorConfiguration {
	t.Helper()
	c, err := configfile.Parse("config.yaml", []byte("apiVersion: config.tenancy.warren.dev/v1alpha1\nkind: OperatorConfiguration\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestResources(t *testing.T) {
	for name, c := range map[string]struct {
		configuration string
		want          string
	}{
		"the defaults": {"", "configmaps secrets rbac.authorization.k8s.io/rolebindings rbac.authorization.k8s.io/roles"},
		"distributed kinds count, each once": {"propagation: {kinds: [{kind: Secret}]}\ndistribution: {kinds: [{kind: Secret, version: v1}, " +
			"{kind: LimitRange, version: v1}]}",
			"limitranges secrets rbac.authorization.k8s.io/rolebindings rbac.authorization.k8s.io/roles"},
		"a kind that is being removed is still written": {"propagation: {kinds: [{kind: Service, mode: Remove}]}\ndistribution: {kinds: []}",
			"services services/status rbac.authorization.k8s.io/rolebindings rbac.authorization.k8s.io/roles"},
		"no kinds: what the operator's own role grants stays in its cage": {"propagation: {kinds: []}\ndistribution: {kinds: []}",
			"rbac.authorization.k8s.io/rolebindings rbac.authorization.k8s.io/roles"},
		"groups are sorted": {"propagation: {kinds: [{group: networking.k8s.io, kind: Ingress}, {group: apps, kind: Deployment}, {group: " +
			"example.com, kind: Widget}]}\ndistribution: {kinds: []}",
			"apps/deployments apps/deployments/status example.com/widgets example.com/widgets/status networking.k8s.io/ingresses " +
				"networking.k8s.io/ingresses/status rbac.authorization.k8s.io/rolebindings rbac.authorization.k8s.io/roles"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range resourcesOf(configured(t, c.configuration)) {
				path := strings.TrimPrefix(r.Group+"/"+r.Name, "/")
				if got = append(got, path); r.Status {
					got = append(got, path+"/status")
				}
			}
			if diff := cmp.Diff(strings.Fields(c.want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPlural(t *testing.T) {
	for kind, want := range map[string]string{
		"Secret": "secrets", "NetworkPolicy": "networkpolicies", "Ingress": "ingresses", "Gateway": "gateways", "Mailbox": "mailboxes",
		"Branch": "branches", "Endpoints": "endpoints", "PersistentVolumeClaim": "persistentvolumeclaims",
	} {
		if got := pluralOf(schema.GroupKind{Kind: kind}); got != want {
			t.Errorf("%s: got %s, want %s", kind, got, want)
		}
	}
}

func TestStatus(t *testing.T) {
	for kind, want := range map[schema.GroupKind]bool{
		{Kind: "Secret"}: false, {Kind: "ConfigMap"}: false, {Kind: "ServiceAccount"}: false, {Kind: "LimitRange"}: false,
		{Group: rbacGroup, Kind: "Role"}: false, {Group: rbacGroup, Kind: "RoleBinding"}: false,
		{Group: "networking.k8s.io", Kind: "NetworkPolicy"}: false,
		{Kind: "ResourceQuota"}:                             true, {Kind: "Service"}: true, {Kind: "PersistentVolumeClaim"}: true,
		{Group: "networking.k8s.io", Kind: "Ingress"}: true, {Group: "apps", Kind: "Deployment"}: true, {Group: "batch", Kind: "CronJob"}: true,
		{Group: "policy", Kind: "PodDisruptionBudget"}: true, {Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: true,
		{Group: "example.com", Kind: "Secret"}: true, // a kind of another group
	} {
		if got := hasStatus(kind); got != want {
			t.Errorf("%s: got %v, want %v", kind, got, want)
		}
	}
}

// TestOrder: the order of the kinds doesn't change the output, and another kind does.
func TestOrder(t *testing.T) {
	one := Print(configured(t, "propagation: {kinds: [{kind: Service}, {group: apps, kind: Deployment}]}"))
	two := Print(configured(t, "propagation: {kinds: [{group: apps, kind: Deployment, mode: All}, {kind: Service}]}"))
	more := Print(configured(t, "propagation: {kinds: [{group: apps, kind: Deployment}, {kind: Service}, {kind: LimitRange}]}"))
	if !bytes.Equal(one, two) {
		t.Error("the order of kinds changes the output")
	}
	if bytes.Equal(one, more) {
		t.Error("one kind more changes nothing")
	}
}

func TestRole(t *testing.T) {
	for name, c := range map[string]struct {
		configuration string
		want          []string // group/resource
	}{
		"the defaults": {"", []string{"/configmaps", "/secrets"}},
		"a kind more": {"propagation: {kinds: [{group: apps, kind: Deployment}]}",
			[]string{"/configmaps", "/secrets", "apps/deployments"}},
		"nothing but bindings":   {"propagation: {kinds: []}\ndistribution: {kinds: []}", nil},
		"Role and RoleBinding":   {"propagation: {kinds: [{group: rbac.authorization.k8s.io, kind: Role}]}\ndistribution: {kinds: []}", nil},
		"no right to the status": {"propagation: {kinds: [{kind: ResourceQuota}]}\ndistribution: {kinds: []}", []string{"/resourcequotas"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := For(configured(t, c.configuration))
			last := files[len(files)-1]
			role := struct {
				Metadata struct{ Name string }
				Rules    []struct {
					APIGroups []string `json:"apiGroups"`
					Resources []string
					Verbs     []string
				}
			}{}
			if err := yaml.Unmarshal(last.Text, &role); err != nil {
				t.Fatal(err)
			}
			if last.Path != "rbac/kinds_configured_role.yaml" || role.Metadata.Name != "warren-kinds-configured" {
				t.Errorf("got %s with %q", last.Path, role.Metadata.Name)
			}
			var got []string
			for _, rule := range role.Rules {
				got = append(got, rule.APIGroups[0]+"/"+rule.Resources[0])
				if len(rule.APIGroups) != 1 || len(rule.Resources) != 1 ||
					!slices.Equal(rule.Verbs, []string{"get", "list", "watch", "create", "update", "delete"}) {
					t.Errorf("rule %v", rule)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
