package v1alpha1

import (
	"strings"

	tenancy "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Protected reports whether a namespace of this name is never in the forest: default, kube-*, the operator's own, that of sudo on request,
// and protectedNamespaces of the file. Namespaces with the label protected are, too; a name can't tell. Whoever held warren-sudo before
// component requests came could become every temporary sudoer.
func (c *OperatorConfiguration) Protected(name, operatorNamespace string) bool {
	return name == "default" || name == tenancy.SudoNamespace || c.ProtectedFromDistribution(name, operatorNamespace)
}

// ProtectedFromDistribution is Protected for ResourceDistributions, which may write to default unless the file lists it.
func (c *OperatorConfiguration) ProtectedFromDistribution(name, operatorNamespace string) bool {
	return strings.HasPrefix(name, "kube-") || name == operatorNamespace || c.ProtectedNamespaces.Match(name)
}

// Reserved reports whether a new LNamespace may not have this name: what is protected, and tenants.reservedNames.
func (c *OperatorConfiguration) Reserved(name, operatorNamespace string) bool {
	return c.Protected(name, operatorNamespace) || c.Tenants.ReservedNames.Match(name)
}
