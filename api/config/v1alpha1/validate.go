package v1alpha1

import (
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tenancy "github.com/warren-tenancy/warren/api/v1alpha1"
)

// validate reports all problems of a decoded file whose defaults are filled in.
func (c *OperatorConfiguration) validate() field.ErrorList {
	var problems field.ErrorList
	for _, found := range []field.ErrorList{
		mustBe(field.NewPath("apiVersion"), c.APIVersion, APIVersion),
		mustBe(field.NewPath("kind"), c.Kind, Kind),
		c.Inheritance.validate(field.NewPath("inheritance")),
		c.SubNamespaces.validate(field.NewPath("subNamespaces")),
		validateGlobs(field.NewPath("protectedNamespaces"), c.ProtectedNamespaces),
		validateRemovals(field.NewPath("acceptRemovals"), c.AcceptRemovals),
		c.Tenants.validate(field.NewPath("tenants")),
		c.Access.validate(field.NewPath("access")),
		oneOf(field.NewPath("sudo", "mode"), c.Sudo.Mode, tenancy.SudoLegacy, tenancy.SudoConstrained, SudoAuto),
		c.Propagation.validate(field.NewPath("propagation")),
		validateGenerators(field.NewPath("propagation", "generators"), c.Propagation.Generators, c.FeatureEnabled(PropagateGenerated)),
		c.Distribution.validate(field.NewPath("distribution")),
		c.Informers.validate(field.NewPath("informers")),
		c.Billing.validate(field.NewPath("billing")),
		validateControllers(field.NewPath("controllers"), c.Controllers),
		c.ClientConnection.validate(field.NewPath("clientConnection")),
		between(field.NewPath("concurrency"), c.Concurrency, 1, 256),
		validateFeatureGates(field.NewPath("featureGates"), c.FeatureGates),
	} {
		problems = append(problems, found...)
	}
	return problems
}

func (i *Inheritance) validate(at *field.Path) field.ErrorList {
	problems := validateKeyGlobs(at.Child("labels"), i.Labels)
	problems = append(problems, validateKeyGlobs(at.Child("annotations"), i.Annotations)...)
	return append(problems, validateKeyGlobs(at.Child("undelegated"), i.Undelegated)...)
}

func (s *SubNamespaces) validate(at *field.Path) field.ErrorList {
	problems := validateKeyGlobs(at.Child("labels"), s.Labels)
	problems = append(problems, validateKeyGlobs(at.Child("annotations"), s.Annotations)...)
	problems = append(problems, validateNamingPolicies(at.Child("namingPolicies"), s.NamingPolicies)...)
	if n := s.Limits.SubNamespaces; n != nil {
		problems = append(problems, atLeast(at.Child("limits", "subNamespaces"), *n, 0)...)
	}
	if n := s.Limits.Depth; n != nil {
		problems = append(problems, atLeast(at.Child("limits", "depth"), *n, 0)...)
	}
	if n := s.Limits.Copies; n != nil {
		problems = append(problems, atLeast(at.Child("limits", "copies"), *n, 0)...)
	}
	if n := s.Limits.Bytes; n != nil {
		problems = append(problems, atLeast(at.Child("limits", "bytes"), *n, 0)...)
	}
	return problems
}

func (t *Tenants) validate(at *field.Path) field.ErrorList {
	problems := validateGlobs(at.Child("reservedNames"), t.ReservedNames)
	return append(problems, atLeast(at.Child("maxPerCreator"), t.MaxPerCreator, 0)...)
}

func (a *Access) validate(at *field.Path) field.ErrorList {
	at = at.Child("userClusterRole")
	switch invalid := content.IsPathSegmentName(a.UserClusterRole); {
	case a.UserClusterRole == "":
		return field.ErrorList{field.Required(at, "the name of a ClusterRole, such as admin")}
	case a.UserClusterRole == "cluster-admin":
		return field.ErrorList{field.Invalid(at, a.UserClusterRole, "must not be cluster-admin: that is what sudo is for")}
	case len(invalid) > 0:
		return field.ErrorList{field.Invalid(at, a.UserClusterRole, "must be the name of a ClusterRole: "+strings.Join(invalid, ", "))}
	}
	return nil
}

func (i *Informers) validate(at *field.Path) field.ErrorList {
	problems := durationAtLeast(at.Child("verifyInterval"), i.VerifyInterval, 0)
	problems = append(problems, durationAtLeast(at.Child("idleGrace"), i.IdleGrace, 0)...)
	problems = append(problems, durationAtLeast(at.Child("degradedAfter"), i.DegradedAfter, time.Second)...)
	problems = append(problems, atLeast(at.Child("maxInformers"), i.MaxInformers, 1)...)
	return append(problems, atLeast(at.Child("maxNamespaces"), i.MaxNamespaces, 1)...)
}

func (c *ClientConnection) validate(at *field.Path) field.ErrorList {
	problems := atLeast(at.Child("burst"), c.Burst, 0)
	if !(c.QPS >= 0 && c.QPS <= math.MaxFloat32) { // also says no to .nan and .inf
		problems = append(problems, field.Invalid(at.Child("qps"), float64(c.QPS), "must be a number of at least 0"))
	}
	return problems
}
