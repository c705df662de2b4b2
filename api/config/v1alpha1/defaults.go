package v1alpha1

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancy "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Default returns the configuration that holds where there is no file. The caller may change it.
func Default() *OperatorConfiguration {
	c := defaultsBeforeFile()
	c.fillIn()
	return c
}

// defaultsBeforeFile are the defaults that don't depend on other keys. A file is decoded over them.
func defaultsBeforeFile() *OperatorConfiguration {
	return &OperatorConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		Inheritance: Inheritance{
			Labels:      Globs{"pod-security.kubernetes.io/*"},
			Annotations: Globs{},
			Undelegated: Globs{"kubernetes.io/*", "*.kubernetes.io/*", "k8s.io/*", "*.k8s.io/*"},
		},
		SubNamespaces:       SubNamespaces{Labels: Globs{}, Annotations: Globs{}, NamingPolicies: []NamingPolicy{}},
		ProtectedNamespaces: Globs{},
		Tenants:             Tenants{ReservedNames: Globs{"*-system", "accurate"}},
		Access:              Access{UserClusterRole: "admin"},
		Sudo:                Sudo{Mode: tenancy.SudoLegacy},
		Propagation:         defaultPropagation(),
		Distribution: Distribution{
			Kinds:          []DistributedKind{{Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "ConfigMap"}},
			MaxObjectBytes: 1500000,
			MaxTotalBytes:  resource.MustParse("1Gi"),
		},
		Informers:    defaultInformers(),
		Billing:      defaultBilling(),
		Controllers:  []string{everyController},
		Concurrency:  16,
		FeatureGates: defaultFeatureGates(),
	}
}

func defaultPropagation() Propagation {
	toolKeys := Globs{"*kubernetes.io/*", "argocd.argoproj.io/*", "meta.helm.sh/*", "*.toolkit.fluxcd.io/*"}
	return Propagation{
		Kinds: []PropagatedKind{
			{Group: rbacGroup, Kind: "Role"}, {Group: rbacGroup, Kind: "RoleBinding"}, {Kind: "Secret"}, {Kind: "ConfigMap"},
		},
		ExcludedLabels:      toolKeys,
		ExcludedAnnotations: slices.Clone(toolKeys),
		NeverPropagate:      []NeverPropagate{},
		Scrub:               Scrub{Interval: metav1.Duration{Duration: 24 * time.Hour}, ObjectsPerSecond: 200},
		Retry: Retry{
			Min: metav1.Duration{Duration: time.Second},
			Max: metav1.Duration{Duration: 5 * time.Minute},
		},
		Generators: []Generator{},
	}
}

func defaultInformers() Informers {
	return Informers{
		VerifyInterval: metav1.Duration{Duration: 5 * time.Minute},
		IdleGrace:      metav1.Duration{Duration: 30 * time.Second},
		DegradedAfter:  metav1.Duration{Duration: 30 * time.Second},
		MaxInformers:   10000,
		MaxNamespaces:  5000,
	}
}

func defaultBilling() Billing {
	return Billing{
		Driver:         DriverNone,
		Table:          "tenant_billing",
		Schema:         SchemaManage,
		FlushInterval:  metav1.Duration{Duration: time.Minute},
		ResyncInterval: metav1.Duration{Duration: time.Hour},
		Batch:          BillingBatch{MaxRows: 500, MaxBytes: resource.MustParse("1Mi")},
		Outbox:         BillingOutbox{Path: "/var/lib/warren/outbox.db", MaxRows: 1000000},
		SQLite:         BillingSQLite{Path: "/var/lib/warren/billing.db"},
		BigQuery:       BillingBigQuery{StatementTimeout: metav1.Duration{Duration: 2 * time.Minute}, MaximumBytesBilled: resource.MustParse("1Gi")},
		Defaults:       []BillingDefault{},
		Required:       []BillingField{},
	}
}

// fillIn sets what depends on other keys, and what list items leave out.
func (c *OperatorConfiguration) fillIn() {
	// A tenant's own bindings must reach its tree whatever the file says (SUB-F7).
	isRoleBinding := func(k PropagatedKind) bool { return withBuiltInGroup(k.GroupKind()) == roleBinding }
	if !slices.ContainsFunc(c.Propagation.Kinds, isRoleBinding) {
		c.Propagation.Kinds = append(c.Propagation.Kinds, PropagatedKind{Group: roleBinding.Group, Kind: roleBinding.Kind})
	}
	for i := range c.Propagation.Kinds {
		kind := &c.Propagation.Kinds[i]
		if kind.Mode == "" {
			kind.Mode = ModeOptIn
		}
		if kind.Scope == "" {
			kind.Scope = ScopeCluster
		}
	}
}
