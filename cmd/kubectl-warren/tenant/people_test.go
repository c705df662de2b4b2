package tenant_test

import (
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/plugin"
)

func TestWrongPeople(t *testing.T) {
	for line, want := range map[string]string{
		"add":                                              "name one user, group or service account, not 0: kubectl warren add NAME",
		"add a b T":                                        "name one user, group or service account, not 2",
		"add erin --list users":                            "--tenant is missing: name the tenant, as in --tenant payments",
		"add erin --tenant payments":                       "--list is missing: choose users, managers or sudoers (--as is",
		"add erin --tenant payments --as user":             "--list is missing: choose users, managers or sudoers (--as is",
		"add erin --tenant payments --list user":           "must be users, managers or sudoers",
		"add erin T --kind user":                           "must be User, Group or ServiceAccount",
		"add erin --tenant Pay --list users":               `--tenant: invalid tenant name "Pay": must be`,
		"add erin T -n ci":                                 "--namespace is for --kind ServiceAccount: a User has no namespace",
		"add deployer T --kind ServiceAccount":             "the namespace of service account deployer is missing: write",
		"add a:b:c T --kind ServiceAccount":                `invalid service account "a:b:c": write NAMESPACE:NAME`,
		"add ci: T --kind ServiceAccount":                  `invalid service account "ci:": write NAMESPACE:NAME`,
		"add :deployer T --kind ServiceAccount":            `invalid namespace name "": must be`,
		"add ci:deployer -n other T --kind ServiceAccount": `"ci:deployer" names namespace ci, and --namespace names other`,
		"remove system:serviceaccount:ci:deployer T":       "is a service account: write --kind ServiceAccount, and its name as",
		"remove erin T --dry-run=yes":                      "must be none, client or server",
		"remove erin T --user-group x":                     "unknown flag: --user-group",
	} {
		t.Run("ACC-P12 add and remove refuse wrong input in one sentence that names what to write: "+line, func(t *testing.T) {
			streams, _, out, problems := genericiooptions.NewTestIOStreams()
			words := strings.Fields("kubectl-warren " + strings.ReplaceAll(line, " T", " --tenant payments --list users"))
			status := plugin.Run(t.Context(), words, streams, invocation.Build{})
			if status != 1 || out.Len() > 0 || !strings.Contains(problems.String(), want) {
				t.Errorf("status %d, got %s, want %q", status, problems, want)
			}
		})
	}
}
