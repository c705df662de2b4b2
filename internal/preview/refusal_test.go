package preview

import (
	"testing"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/configfile"
)

func TestMayRemove(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*config.OperatorConfiguration)
		want   bool
	}{
		"nothing": {func(*config.OperatorConfiguration) {}, false},
		"a retry": {func(c *config.OperatorConfiguration) { c.Concurrency++ }, false},
		"a protected namespace": {func(c *config.OperatorConfiguration) { c.ProtectedNamespaces = append(c.ProtectedNamespaces, "pay-*") },
			true},
		"an inherited key": {func(c *config.OperatorConfiguration) { c.Inheritance.Labels = []string{"team"} }, true},
		"BILL-72 a new file that changes a key of billing.namespaceLabels counts as one that may remove labels": {
			func(c *config.OperatorConfiguration) { c.Billing.NamespaceLabels.Owner = "example.com/owner" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			now := configfile.Default()
			test.change(now)
			if got := mayRemove(configfile.Default(), now); got != test.want {
				t.Errorf("%t, want %t", got, test.want)
			}
		})
	}
}
