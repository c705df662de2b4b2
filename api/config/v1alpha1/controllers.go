package v1alpha1

import "slices"

// The controllers that the key controllers can name.
const (
	ControllerLNamespace   = "lnamespace"
	ControllerAccess       = "access"
	ControllerSubNamespace = "subnamespace"
	ControllerHierarchy    = "hierarchy"
	ControllerPropagation  = "propagation"
	ControllerDistribution = "distribution"
	ControllerBilling      = "billing"
)

// EveryController stands for the controllers that no entry names.
const EveryController = "*"

// ControllerNames returns the names of all controllers.
func ControllerNames() []string {
	return []string{
		ControllerLNamespace, ControllerAccess, ControllerSubNamespace, ControllerHierarchy,
		ControllerPropagation, ControllerDistribution, ControllerBilling,
	}
}

// Enabled reports whether the controller of this name runs: as in kube-controller-manager, the first entry that names it
// decides, and "*" speaks for those that none names.
func (c *OperatorConfiguration) Enabled(controller string) bool {
	for _, entry := range c.Controllers {
		switch entry {
		case controller:
			return true
		case "-" + controller:
			return false
		}
	}
	return slices.Contains(c.Controllers, EveryController)
}
