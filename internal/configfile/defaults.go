package configfile

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	tenancy "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Default returns the configuration that applies without a file. The caller may change it.
func Default() *config.OperatorConfiguration {
	c := defaultsBeforeFile()
	fillInDefaults(c)
	return c
}

// defaultsBeforeFile returns the defaults over which a file is decoded. It leaves out those that depend on other keys. It also leaves out
// the items of lists of mappings, because the decoder would mix them with the items of the file.
func defaultsBeforeFile() *config.OperatorConfiguration {
	return &config.OperatorConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: config.APIVersion, Kind: config.Kind},
		Inheritance: config.Inheritance{
			Labels:      config.Globs{"pod-security.kubernetes.io/*"},
			Annotations: config.Globs{},
			Undelegated: config.Globs{"kubernetes.io/*", "*.kubernetes.io/*", "k8s.io/*", "*.k8s.io/*"},
		},
		SubNamespaces:       config.SubNamespaces{Labels: config.Globs{}, Annotations: config.Globs{}, NamingPolicies: []config.NamingPolicy{}},
		ProtectedNamespaces: config.Globs{},
		Tenants:             config.Tenants{ReservedNames: config.Globs{"*-system", "accurate"}},
		Access:              config.Access{UserClusterRole: "admin"},
		Sudo:                config.Sudo{Mode: tenancy.SudoLegacy, Requests: defaultSudoRequests()},
		Propagation:         defaultPropagation(),
		Distribution: config.Distribution{
			MaxObjectBytes: 1500000,
			MaxTotalBytes:  resource.MustParse("1Gi"),
		},
		Informers:    defaultInformers(),
		Billing:      defaultBilling(),
		Controllers:  []string{config.EveryController},
		Concurrency:  16,
		FeatureGates: defaultFeatureGates(),
	}
}

// stateAnnotations are the annotations of Kubernetes in which a controller or kubectl keeps the state of the one object that has them.
// All others of Kubernetes' domain belong on copies: without them a copy of an Ingress or a Service would be open to more than its source.
var stateAnnotations = config.Globs{
	"kubectl.kubernetes.io/last-applied-configuration", "applyset.kubernetes.io/*", "control-plane.alpha.kubernetes.io/*",
	"deployment.kubernetes.io/*", "deprecated.daemonset.template.generation",
	"autoscaling.alpha.kubernetes.io/conditions", "autoscaling.alpha.kubernetes.io/current-metrics",
	"pv.kubernetes.io/*", "volume.kubernetes.io/*", "volume.beta.kubernetes.io/storage-provisioner",
}

func defaultPropagation() config.Propagation {
	toolKeys := config.Globs{"argocd.argoproj.io/*", "meta.helm.sh/*", "*.toolkit.fluxcd.io/*"}
	return config.Propagation{
		ExcludedLabels:      slices.Concat(config.Globs{"*kubernetes.io/*"}, toolKeys),
		ExcludedAnnotations: slices.Concat(stateAnnotations, toolKeys),
		NeverPropagate:      []config.NeverPropagate{},
		Scrub:               config.Scrub{Interval: metav1.Duration{Duration: 24 * time.Hour}, ObjectsPerSecond: 200},
		Retry: config.Retry{
			Min: metav1.Duration{Duration: time.Second},
			Max: metav1.Duration{Duration: 5 * time.Minute},
		},
		Generators: []config.Generator{},
	}
}

func defaultSudoRequests() config.SudoRequests {
	return config.SudoRequests{
		MaxDuration: metav1.Duration{Duration: 24 * time.Hour},
		PendingFor:  metav1.Duration{Duration: 24 * time.Hour},
		HistoryFor:  metav1.Duration{Duration: 2160 * time.Hour},
		MaxOpen:     3,
		MaxPerDay:   20,
		BreakGlass:  true,
	}
}

func defaultInformers() config.Informers {
	return config.Informers{
		VerifyInterval: metav1.Duration{Duration: 5 * time.Minute},
		IdleGrace:      metav1.Duration{Duration: 30 * time.Second},
		DegradedAfter:  metav1.Duration{Duration: 30 * time.Second},
		MaxInformers:   10000,
		MaxNamespaces:  5000,
	}
}

func defaultBilling() config.Billing {
	return config.Billing{
		Driver:         config.DriverNone,
		Table:          "tenant_billing",
		Schema:         config.SchemaManage,
		FlushInterval:  metav1.Duration{Duration: time.Minute},
		ResyncInterval: metav1.Duration{Duration: time.Hour},
		Batch:          config.BillingBatch{MaxRows: 500, MaxBytes: resource.MustParse("1Mi")},
		SQLite:         config.BillingSQLite{Path: "/var/lib/warren/billing.db"},
		BigQuery: config.BillingBigQuery{StatementTimeout: metav1.Duration{Duration: 2 * time.Minute},
			MaximumBytesBilled: resource.MustParse("1Gi")},
		Defaults: []config.BillingDefault{},
		Required: []config.BillingField{},
	}
}

// fillInDefaults sets missing lists of kinds, modes and scopes, and adds RoleBinding to the propagated kinds.
func fillInDefaults(c *config.OperatorConfiguration) {
	if c.Distribution.Kinds == nil {
		c.Distribution.Kinds = []config.DistributedKind{{Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "ConfigMap"}}
	}
	if c.Propagation.Kinds == nil {
		c.Propagation.Kinds = []config.PropagatedKind{
			{Group: rbacGroup, Kind: "Role"}, {Group: rbacGroup, Kind: "RoleBinding"}, {Kind: "Secret"}, {Kind: "ConfigMap"},
		}
	}
	// A tenant's own bindings must reach its tree whatever the file says (SUB-F7).
	isRoleBinding := func(k config.PropagatedKind) bool { return withBuiltInGroup(k.GroupKind()) == roleBinding }
	if !slices.ContainsFunc(c.Propagation.Kinds, isRoleBinding) {
		c.Propagation.Kinds = append(c.Propagation.Kinds, config.PropagatedKind{Group: roleBinding.Group, Kind: roleBinding.Kind})
	}
	for i := range c.Propagation.Kinds {
		kind := &c.Propagation.Kinds[i]
		if kind.Mode == "" {
			kind.Mode = config.ModeOptIn
		}
		if kind.Scope == "" {
			kind.Scope = config.ScopeCluster
		}
	}
}
