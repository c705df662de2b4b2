package v1alpha1

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

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

const everyController = "*"

// ControllerNames returns the names of all controllers.
func ControllerNames() []string {
	return []string{
		ControllerLNamespace, ControllerAccess, ControllerSubNamespace, ControllerHierarchy,
		ControllerPropagation, ControllerDistribution, ControllerBilling,
	}
}

// Enabled says whether the controller of this name runs: as in kube-controller-manager, the first entry that names it
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
	return slices.Contains(c.Controllers, everyController)
}

func validateControllers(at *field.Path, entries []string) field.ErrorList {
	var problems field.ErrorList
	for i, entry := range entries {
		if entry != everyController && !slices.Contains(ControllerNames(), strings.TrimPrefix(entry, "-")) {
			problems = append(problems, field.Invalid(at.Index(i), entry,
				fmt.Sprintf("must be *, a controller's name, or -name: %s", strings.Join(ControllerNames(), ", "))))
		}
	}
	return problems
}
