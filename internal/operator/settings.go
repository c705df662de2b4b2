package operator

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/controllers/access"
	"github.com/warren-tenancy/warren/controllers/labelling"
	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/rules"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

func accessSettings(c *config.OperatorConfiguration, operatorNamespace string) access.Settings {
	return access.Settings{
		UserClusterRole: c.Access.UserClusterRole, SudoMode: c.Sudo.Mode, OperatorNamespace: operatorNamespace,
	}
}

// copiesSettings returns the settings of the copying engine.
func copiesSettings(c *config.OperatorConfiguration, timing copyengine.Timing) copyengine.Settings {
	return copyengine.Settings{
		Kinds: copiedKinds(c), Rules: rules.ForCopies(c),
		RetryMin: c.Propagation.Retry.Min.Duration, RetryMax: c.Propagation.Retry.Max.Duration,
		DegradedAfter: c.Informers.DegradedAfter.Duration, Timing: timing,
	}
}

func copiedKinds(c *config.OperatorConfiguration) []copyengine.Kind {
	var kinds []copyengine.Kind
	for _, k := range c.Propagation.Kinds {
		kinds = append(kinds, copyengine.Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind},
			Mode:             copies.KindMode(k.Mode),
			Scope:            copyengine.Scope(k.Scope),
		})
	}
	return kinds
}

// uncopiedKinds returns those of the kinds that the configuration doesn't have, or has in mode Remove.
func uncopiedKinds(c *config.OperatorConfiguration, kinds []schema.GroupVersionKind) []schema.GroupVersionKind {
	return slices.DeleteFunc(slices.Clone(kinds), func(kind schema.GroupVersionKind) bool {
		k := c.Propagated(kind.GroupKind())
		return k != nil && k.Mode != config.ModeRemove
	})
}

func scrubSettings(c *config.OperatorConfiguration) copying.Scrub {
	return copying.Scrub{Interval: c.Propagation.Scrub.Interval.Duration, ObjectsPerSecond: c.Propagation.Scrub.ObjectsPerSecond}
}

// generatedSettings returns the settings of generated objects, without the kinds of RBAC. A user who may annotate a generator may lack the
// rights that a copied RBAC object would grant.
func generatedSettings(c *config.OperatorConfiguration) labelling.Settings {
	s := labelling.Settings{RetryMin: c.Propagation.Retry.Min.Duration, RetryMax: c.Propagation.Retry.Max.Duration}
	for _, k := range configfile.LabelledKinds(c) {
		s.Kinds = append(s.Kinds, schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind})
	}
	for _, g := range c.Propagation.Generators {
		s.Generators = append(s.Generators, schema.GroupVersionKind{Group: g.Group, Kind: g.Kind})
	}
	return s
}

// informerOptions returns the settings of the informers of copied kinds. If every kind is watched in the whole cluster, RBAC is watched
// only while the operator may not watch one of the kinds.
func informerOptions(c *config.OperatorConfiguration) watchset.Options {
	watchRBAC := watchset.WhileForbidden
	if slices.ContainsFunc(copiedKinds(c), copyengine.Kind.IsNarrow) {
		watchRBAC = watchset.WhereAllowed
	}
	return watchset.Options{
		WatchRBAC:      watchRBAC,
		VerifyInterval: &c.Informers.VerifyInterval.Duration, IdleGrace: &c.Informers.IdleGrace.Duration,
		DegradedAfter: c.Informers.DegradedAfter.Duration,
		MaxInformers:  c.Informers.MaxInformers, MaxNamespaces: c.Informers.MaxNamespaces,
		Registerer: metrics.Registry, Logger: ctrl.Log.WithName("informers"),
	}
}

// distributeOptions returns the settings of ResourceDistributions.
func distributeOptions(c *config.OperatorConfiguration, operatorNamespace string, timing distribute.Timing) distribute.Options {
	pure, covered := rules.ForDistributions(c, operatorNamespace)
	return distribute.Options{
		Settings: pure, Covered: covered,
		RetryMin: c.Propagation.Retry.Min.Duration, RetryMax: c.Propagation.Retry.Max.Duration,
		DegradedAfter: c.Informers.DegradedAfter.Duration, Timing: timing,
	}
}
