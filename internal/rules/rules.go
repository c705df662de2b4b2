// Package rules turns the configuration file into the settings of packages forest, copies, distribute and sudo. The operator uses it, and
// so do the commands that predict what the operator would do.
package rules

import (
	"path"

	"k8s.io/apimachinery/pkg/runtime/schema"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/sudo"
)

// ForForest returns the configuration's rules about trees.
func ForForest(c *config.OperatorConfiguration, operatorNamespace string) forest.Rules {
	return forest.Rules{
		InheritLabel:      c.Inheritance.Labels.Match,
		InheritAnnotation: c.Inheritance.Annotations.Match,
		SubLabel:          c.SubNamespaces.Labels.Match,
		SubAnnotation:     c.SubNamespaces.Annotations.Match,
		ProtectedName:     func(name string) bool { return c.Protected(name, operatorNamespace) },
		ReservedName:      c.Tenants.ReservedNames.Match,
		AllowCascading:    c.SubNamespaces.AllowCascadingDeletion,
		CheckName:         func(root, name string) error { return configfile.CheckName(c.SubNamespaces.NamingPolicies, root, name) },
		Limits:            c.SubNamespaces.Limits,
		Billing:           forest.BillingKeys{CostCenter: c.Billing.NamespaceLabels.CostCenter, Owner: c.Billing.NamespaceLabels.Owner},
	}
}

// ForCopies returns the configuration's rules about copies.
func ForCopies(c *config.OperatorConfiguration) copies.Rules {
	return copies.Rules{
		ExcludedLabel:      c.Propagation.ExcludedLabels.Match,
		ExcludedAnnotation: c.Propagation.ExcludedAnnotations.Match,
		NeverPropagate:     neverPropagate(c.Propagation.NeverPropagate),
		Memo:               copies.NewMemo(),
	}
}

// ForSudo returns the configuration's limits of sudo on request.
func ForSudo(c *config.OperatorConfiguration) sudo.Limits {
	r := c.Sudo.Requests
	return sudo.Limits{MaxDuration: r.MaxDuration.Duration, PendingFor: r.PendingFor.Duration, HistoryFor: r.HistoryFor.Duration,
		MaxOpen: r.MaxOpen, MaxPerDay: r.MaxPerDay, BreakGlass: r.BreakGlass}
}

// ForDistributions returns the configuration's rules about ResourceDistributions. covered reports whether a kind is propagated in mode
// All. Then every object of the kind in a tree is a source, even without labels, and is in the way of a distributed copy.
func ForDistributions(c *config.OperatorConfiguration,
	operatorNamespace string) (settings distribute.Settings, covered func(schema.GroupKind) bool) {
	settings = distribute.Settings{
		AllowOverwrite: c.Distribution.AllowOverwrite,
		Protected:      func(name string) bool { return c.ProtectedFromDistribution(name, operatorNamespace) },
	}
	for _, k := range c.Distribution.Kinds {
		settings.Kinds = append(settings.Kinds, k.GroupVersionKind())
	}
	return settings, func(kind schema.GroupKind) bool {
		propagated := c.Propagated(kind)
		return propagated != nil && copies.KindMode(propagated.Mode) == copies.All
	}
}

// neverPropagate returns a function that reports whether an object is excluded from propagation, by a configured rule or as a share of a
// budget. A rule that names a type doesn't match while the type is unknown ("").
func neverPropagate(rules []config.NeverPropagate) func(schema.GroupKind, string, string, map[string]string) bool {
	return func(kind schema.GroupKind, name, secretType string, labels map[string]string) bool {
		if kind.Group == "" && kind.Kind == "ResourceQuota" && name == budget.QuotaName {
			return true // each namespace has its own share
		}
		for _, rule := range rules {
			if rule.Kind != "" && (rule.Kind != kind.Kind || rule.Group != kind.Group) {
				continue
			}
			if matchesGlob(rule.Name, name) && matchesGlob(rule.Type, secretType) && hasLabels(labels, rule.Labels) {
				return true
			}
		}
		return false
	}
}

// matchesGlob reports whether text matches a glob that was validated when the configuration was loaded; the glob "" matches any text.
func matchesGlob(glob, text string) bool {
	ok, err := path.Match(glob, text)
	return glob == "" || ok && err == nil && text != ""
}

func hasLabels(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if got, ok := labels[key]; !ok || got != value {
			return false
		}
	}
	return true
}
