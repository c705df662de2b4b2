package operator

import (
	"path"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/controllers/access"
	"github.com/warren-tenancy/warren/controllers/distribution"
	"github.com/warren-tenancy/warren/controllers/propagation"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// forestRules are what the configuration says about trees.
func forestRules(c *config.OperatorConfiguration, operatorNamespace string) forest.Rules {
	return forest.Rules{
		InheritLabel:      c.Inheritance.Labels.Match,
		InheritAnnotation: c.Inheritance.Annotations.Match,
		SubLabel:          c.SubNamespaces.Labels.Match,
		SubAnnotation:     c.SubNamespaces.Annotations.Match,
		ProtectedName:     func(name string) bool { return c.Protected(name, operatorNamespace) },
		ReservedName:      c.Tenants.ReservedNames.Match,
		AllowCascading:    c.SubNamespaces.AllowCascadingDeletion,
		CheckName:         c.SubNamespaces.CheckName,
		Limits:            c.SubNamespaces.Limits,
	}
}

func accessSettings(c *config.OperatorConfiguration, operatorNamespace string) access.Settings {
	return access.Settings{
		UserClusterRole: c.Access.UserClusterRole, SudoMode: c.Sudo.Mode, OperatorNamespace: operatorNamespace,
	}
}

func propagationSettings(c *config.OperatorConfiguration) propagation.Settings {
	s := propagation.Settings{
		Rules: propagate.Rules{
			ExcludedLabel:      c.Propagation.ExcludedLabels.Match,
			ExcludedAnnotation: c.Propagation.ExcludedAnnotations.Match,
			NeverPropagate:     neverPropagate(c.Propagation.NeverPropagate),
			Memo:               propagate.NewMemo(),
		},
		RetryMin: c.Propagation.Retry.Min.Duration,
		RetryMax: c.Propagation.Retry.Max.Duration,
		Scrub: copying.Scrub{
			Interval: c.Propagation.Scrub.Interval.Duration, ObjectsPerSecond: int(c.Propagation.Scrub.ObjectsPerSecond),
		},
	}
	for _, k := range c.Propagation.Kinds {
		s.Kinds = append(s.Kinds, propagation.Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind},
			Mode:             propagate.KindMode(k.Mode),
		})
	}
	return s
}

func propagationChanged(old, now *config.OperatorConfiguration) bool {
	return !reflect.DeepEqual(old.Propagation, now.Propagation)
}

func distributionSettings(c *config.OperatorConfiguration, operatorNamespace string) distribution.Settings {
	s := distribution.Settings{
		Settings: distribute.Settings{
			AllowOverwrite: c.Distribution.AllowOverwrite,
			Protected:      func(name string) bool { return c.ProtectedFromDistribution(name, operatorNamespace) },
		},
		Covered: func(kind schema.GroupKind) bool {
			return slices.ContainsFunc(c.Propagation.Kinds, func(k config.PropagatedKind) bool {
				return k.Group == kind.Group && k.Kind == kind.Kind && propagate.KindMode(k.Mode) == propagate.All
			})
		},
		RetryMin: c.Propagation.Retry.Min.Duration, RetryMax: c.Propagation.Retry.Max.Duration,
		Scrub: copying.Scrub{
			Interval: c.Propagation.Scrub.Interval.Duration, ObjectsPerSecond: int(c.Propagation.Scrub.ObjectsPerSecond),
		},
	}
	for _, k := range c.Distribution.Kinds {
		s.Kinds = append(s.Kinds, k.GroupVersionKind())
	}
	return s
}

func distributionChanged(old, now *config.OperatorConfiguration) bool {
	return propagationChanged(old, now) || !reflect.DeepEqual(old.Distribution, now.Distribution) ||
		!reflect.DeepEqual(old.ProtectedNamespaces, now.ProtectedNamespaces)
}

// neverPropagate matches the configured rules. A rule that names a type says nothing as long as the type is not known.
func neverPropagate(rules []config.NeverPropagate) func(schema.GroupKind, string, string, map[string]string) bool {
	return func(kind schema.GroupKind, name, secretType string, labels map[string]string) bool {
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

// matchesGlob says whether a glob that was validated at load, or none, fits text.
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
