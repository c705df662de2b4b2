package configfile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	tenancy "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
)

// validateConfiguration reports all problems of a decoded file whose defaults are filled in.
func validateConfiguration(c *config.OperatorConfiguration) field.ErrorList {
	var problems field.ErrorList
	for _, found := range []field.ErrorList{
		invalidUnlessEqual(field.NewPath("apiVersion"), c.APIVersion, config.APIVersion),
		invalidUnlessEqual(field.NewPath("kind"), c.Kind, config.Kind),
		validateInheritance(field.NewPath("inheritance"), &c.Inheritance),
		validateSubNamespaces(field.NewPath("subNamespaces"), &c.SubNamespaces),
		validateAllGlobs(field.NewPath("protectedNamespaces"), c.ProtectedNamespaces),
		validateRemovals(field.NewPath("acceptRemovals"), c.AcceptRemovals),
		validateTenants(field.NewPath("tenants"), &c.Tenants),
		validateAccess(field.NewPath("access"), &c.Access),
		validateSudoMode(field.NewPath("sudo", "mode"), c.Sudo.Mode),
		validateSudoRequests(field.NewPath("sudo", "requests"), &c.Sudo.Requests),
		validatePropagation(field.NewPath("propagation"), &c.Propagation),
		validateGenerators(field.NewPath("propagation", "generators"), c.Propagation.Generators, c.FeatureEnabled(config.PropagateGenerated)),
		validateDistribution(field.NewPath("distribution"), &c.Distribution),
		validateInformers(field.NewPath("informers"), &c.Informers),
		validateBilling(field.NewPath("billing"), &c.Billing),
		validateControllers(field.NewPath("controllers"), c.Controllers),
		validateClientConnection(field.NewPath("clientConnection"), &c.ClientConnection),
		checkBetween(field.NewPath("concurrency"), c.Concurrency, 1, 256),
		validateFeatureGates(field.NewPath("featureGates"), c.FeatureGates),
	} {
		problems = append(problems, found...)
	}
	return problems
}

// validateSudoMode adds the next step to the rule. The operator doesn't find out by itself what the API server knows.
func validateSudoMode(at *field.Path, mode tenancy.SudoMode) field.ErrorList {
	problems := checkOneOf(at, mode, tenancy.SudoLegacy, tenancy.SudoConstrained)
	for _, problem := range problems {
		problem.Detail += ": choose Legacy, unless every API server has constrained impersonation (Kubernetes 1.36)"
	}
	return problems
}

func validateSudoRequests(at *field.Path, r *config.SudoRequests) field.ErrorList {
	problems := durationAtLeast(at.Child("maxDuration"), r.MaxDuration, time.Minute)
	if most := 24 * time.Hour; r.MaxDuration.Duration > most {
		problems = append(problems, field.Invalid(at.Child("maxDuration"), r.MaxDuration.Duration.String(), "must be at most 24h"))
	}
	problems = append(problems, durationAtLeast(at.Child("pendingFor"), r.PendingFor, time.Second)...)
	problems = append(problems, durationAtLeast(at.Child("historyFor"), r.HistoryFor, 24*time.Hour)...)
	problems = append(problems, checkAtLeast(at.Child("maxOpen"), r.MaxOpen, 1)...)
	return append(problems, checkAtLeast(at.Child("maxPerDay"), r.MaxPerDay, 1)...)
}

func validateInheritance(at *field.Path, i *config.Inheritance) field.ErrorList {
	problems := validateKeyGlobs(at.Child("labels"), i.Labels)
	problems = append(problems, validateKeyGlobs(at.Child("annotations"), i.Annotations)...)
	return append(problems, validateKeyGlobs(at.Child("undelegated"), i.Undelegated)...)
}

func validateSubNamespaces(at *field.Path, s *config.SubNamespaces) field.ErrorList {
	problems := validateKeyGlobs(at.Child("labels"), s.Labels)
	problems = append(problems, validateKeyGlobs(at.Child("annotations"), s.Annotations)...)
	problems = append(problems, validateNamingPolicies(at.Child("namingPolicies"), s.NamingPolicies)...)
	if n := s.Limits.SubNamespaces; n != nil {
		problems = append(problems, checkAtLeast(at.Child("limits", "subNamespaces"), *n, 0)...)
	}
	if n := s.Limits.Depth; n != nil {
		problems = append(problems, checkAtLeast(at.Child("limits", "depth"), *n, 0)...)
	}
	if n := s.Limits.Copies; n != nil {
		problems = append(problems, checkAtLeast(at.Child("limits", "copies"), *n, 0)...)
	}
	if n := s.Limits.Bytes; n != nil {
		problems = append(problems, checkAtLeast(at.Child("limits", "bytes"), *n, 0)...)
	}
	if s.Limits.Sudoers != nil {
		problems = append(problems, field.Forbidden(at.Child("limits", "sudoers"),
			"the configuration has no limit of sudoers: set spec.limits.sudoers of an LNamespace"))
	}
	for _, problem := range budget.Check(s.Limits.Hard) {
		problems = append(problems, field.Invalid(at.Child("limits", "hard"), field.OmitValueType{}, problem))
	}
	return problems
}

func validateTenants(at *field.Path, t *config.Tenants) field.ErrorList {
	problems := validateAllGlobs(at.Child("reservedNames"), t.ReservedNames)
	return append(problems, checkAtLeast(at.Child("maxPerCreator"), t.MaxPerCreator, 0)...)
}

func validateAccess(at *field.Path, a *config.Access) field.ErrorList {
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

func validateInformers(at *field.Path, i *config.Informers) field.ErrorList {
	problems := durationAtLeast(at.Child("verifyInterval"), i.VerifyInterval, 0)
	problems = append(problems, durationAtLeast(at.Child("idleGrace"), i.IdleGrace, 0)...)
	problems = append(problems, durationAtLeast(at.Child("degradedAfter"), i.DegradedAfter, time.Second)...)
	problems = append(problems, checkAtLeast(at.Child("maxInformers"), i.MaxInformers, 1)...)
	return append(problems, checkAtLeast(at.Child("maxNamespaces"), i.MaxNamespaces, 1)...)
}

func validateClientConnection(at *field.Path, c *config.ClientConnection) field.ErrorList {
	problems := checkAtLeast(at.Child("burst"), c.Burst, 0)
	if c.QPS < 0 {
		problems = append(problems, field.Invalid(at.Child("qps"), float64(c.QPS), "must be a number of at least 0"))
	}
	return problems
}

func validateControllers(at *field.Path, entries []string) field.ErrorList {
	var problems field.ErrorList
	for i, entry := range entries {
		if entry != config.EveryController && !slices.Contains(config.ControllerNames(), strings.TrimPrefix(entry, "-")) {
			problems = append(problems, field.Invalid(at.Index(i), entry,
				fmt.Sprintf("must be *, a controller's name, or -name: %s", strings.Join(config.ControllerNames(), ", "))))
		}
	}
	return problems
}
