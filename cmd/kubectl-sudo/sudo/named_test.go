package sudo

import (
	"strings"
	"testing"
)

func TestNamed(t *testing.T) {
	for line, want := range map[string]struct{ namespace, tenant string }{
		"get ns forge-a":                      {namespace: "forge-a"},
		"describe namespace/forge-a":          {namespace: "forge-a"},
		"label ns forge-a team=neco":          {namespace: "forge-a"},
		"warren tree forge":                   {namespace: "forge"},
		"warren tree -o wide":                 {},
		"warren get pods --tenant forge":      {tenant: "forge"},
		"warren get pods --tenant=forge":      {tenant: "forge"},
		"warren get pods --tenant":            {},
		"warren add x -- --tenant forge":      {},
		"get ns":                              {},
		"get ns -l a=b":                       {},
		"get pods ns":                         {},
		"create ns forge-a":                   {},
		"get lns forge":                       {},
		"tenant --tenant forge":               {},
		"exec -it web -- kubectl get ns kube": {},
	} {
		t.Run("ACC-P14 the tenant is also that of the namespace that COMMAND is about, "+
			"and of --tenant of kubectl warren: "+line, func(t *testing.T) {
			words := strings.Fields(line)
			if namespace, tenant := namespaceIn(words), tenantIn(words); namespace != want.namespace || tenant != want.tenant {
				t.Errorf("namespace %q, tenant %q", namespace, tenant)
			}
		})
	}
}
