package doctor

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

func TestJudgeServer(t *testing.T) {
	mode := func(m v1alpha1.SudoMode) file {
		c := &config.OperatorConfiguration{}
		c.Sudo.Mode = m
		return file{config: c}
	}
	for name, c := range map[string]struct {
		minor  int
		offers bool
		file   file
		want   Status
	}{
		"too old":    {33, false, mode(v1alpha1.SudoLegacy), Error},
		"the oldest": {34, false, mode(v1alpha1.SudoLegacy), OK},
		"ACC-C09 check server fails for Constrained on an older API server": {35, false, mode(v1alpha1.SudoConstrained), Error},
		"ACC-C09 check server fails for Constrained without the gate":       {36, false, mode(v1alpha1.SudoConstrained), Error},
		"ACC-C09 check server is ok for Constrained with the gate":          {36, true, mode(v1alpha1.SudoConstrained), OK},
		"the configuration is unknown":                                      {36, true, file{unknown: errors.New("forbidden")}, Warning},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judgeServer("v1.x", c.minor, c.offers, c.file); got.Status != c.want {
				t.Errorf("%+v", got)
			}
		})
	}
}

// The lines are those of API server 1.36.3.
func TestServerByItsMetrics(t *testing.T) {
	const other = `kubernetes_feature_enabled{name="ContextualLogging",stage=""} 1` + "\n"
	for metrics, want := range map[string]bool{
		other: false,
		other + `kubernetes_feature_enabled{name="ConstrainedImpersonation",stage="BETA"} 1` + "\n":         true,
		other + `kubernetes_feature_enabled{name="ConstrainedImpersonation",stage="BETA"} 0` + "\n" + other: false,
	} {
		if got := offersConstrained(metrics); got != want {
			t.Errorf("%q: %v, want %v", metrics, got, want)
		}
	}
}

// The refusals are those of API server 1.36.3.
func TestJudgeLevel(t *testing.T) {
	for name, c := range map[string]struct {
		answer error
		want   Status
		says   string
	}{
		"accepted": {nil, Warning, "the default level is privileged: a user who controls a namespace without the label enforce can " +
			"reach the nodes"},
		"baseline": {errors.New(
			`pods "warren-doctor" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostPID=true), privileged`), OK,
			"the default level of pod security is baseline"},
		"forbidden": {errors.New(`pods is forbidden: User "alice" cannot create`), Warning,
			`the default level is not known: a privileged pod in default was refused for another reason: pods is forbidden: User "alice" cannot ` +
				`create`},
	} {
		if got := checkLevel("default", c.answer); got.Status != c.want || got.Message != c.says {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestJudgeWebhook(t *testing.T) {
	for name, c := range map[string]struct {
		answer error
		want   Status
	}{
		"allowed": {nil, OK},
		"refused": {errors.New(`admission webhook "lnamespaces.tenancy.warren.dev" denied the request: no`), OK},
		"away": {errors.New(`Internal error occurred: failed calling webhook "lnamespaces.tenancy.warren.dev": connection refused`),
			Error},
		"not allowed": {errors.New(`lnamespaces is forbidden: User "alice" cannot create`), Warning},
	} {
		if got := judgeWebhook(c.answer); got.Status != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// BILL-35: what doctor concludes about the ledger from the tenants' condition BillingExported.
func TestJudgeBilling(t *testing.T) {
	driver := func(d config.BillingDriver) file {
		return file{config: &config.OperatorConfiguration{Billing: config.Billing{Driver: d}}}
	}
	unknown := file{unknown: errors.New("forbidden")}
	said := func(reasons ...string) (told billingTold) {
		told.reasons = map[string][]string{}
		for i, reason := range reasons {
			condition := &metav1.Condition{Status: metav1.ConditionFalse, Reason: reason}
			switch reason {
			case "":
				condition = nil
			case "Exported":
				condition.Status = metav1.ConditionTrue
			}
			told.countTenant(string(rune('a'+i)), condition)
		}
		return told
	}
	for name, c := range map[string]struct {
		file file
		told billingTold
		want Status
		says string
	}{
		"off": {driver(config.DriverNone), said("", ""), OK, "off: billing.driver is none"},
		"nobody exports": {driver(config.DriverSQLite), said("Exported", "NotRunning"), Error,
			"billing.driver sqlite is configured, but no billing exporter is running for 1 of 2 tenants"},
		"nobody, as a reader": {unknown, said("NotRunning"), Error,
			"a driver is configured, but no billing exporter is running for 1 of 1 tenants"},
		"the warehouse is away": {driver(config.DriverPostgres), said("WarehouseUnavailable", "Exported", "InvalidData"), Warning,
			"the ledger does not have all changes of these tenants: InvalidData: c; WarehouseUnavailable: a"},
		"all is there": {driver(config.DriverPostgres), said("Exported", ""), OK,
			"condition BillingExported is True for 1 of 2 tenants"},
		"no tenant yet": {driver(config.DriverSQLite), said(), Warning,
			"billing.driver sqlite is configured, and no tenant has condition BillingExported yet"},
		"a reader in an idle place": {unknown, said(""), Warning, "no tenant has condition BillingExported, and the operator's configuration " +
			"is not known: forbidden"},
	} {
		t.Run("BILL-35 doctor has an error if no exporter runs, and a warning if the ledger lacks changes of tenants: "+name, func(t *testing.T) {
			if got := judgeBilling(c.file, c.told); got.Status != c.want || got.Message != c.says {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestJudgeSources(t *testing.T) {
	for name, c := range map[string]struct {
		unsound []string
		others  uncopied
		want    Check
	}{
		"none": {nil, uncopied{},
			Check{"sources", OK, "the operator can copy every object that has the label propagate", ""}},
		"two kinds": {nil,
			uncopied{objects: []string{"NetworkPolicy rails/deny", "LimitRange rails/limits"},
				kinds: []string{"NetworkPolicy.networking.k8s.io", "LimitRange"}},
			Check{"sources", Warning, "these objects have the label propagate, but the operator copies no objects of their kinds: " +
				"LimitRange rails/limits, NetworkPolicy rails/deny", "add LimitRange, NetworkPolicy.networking.k8s.io to propagation.kinds, in a " +
				"mode other than Remove (make deploy CONFIG=FILE), or take the label off"}},
		"a kind that is not listed": {[]string{"Secret a/s"},
			uncopied{unlisted: []string{"Gadget.example.com"}},
			Check{"sources", Warning, "these objects have the label propagate, but the operator can't copy them: Secret a/s; objects with the " +
				"label propagate are not shown, because you may not list Gadget.example.com", "kubectl warren trace KIND/NAME -n NAMESPACE says " +
				"why: place the namespace in a tree, mend the selector, or take the finalizers or the label off; ask a cluster admin to run this"}},
	} {
		t.Run("PROP-E11 doctor names labelled objects whose kind is not copied, the kinds to add, and the kinds that the user may not list: "+
			name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, judgeSources(c.unsound, c.others)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestJudgeKinds(t *testing.T) {
	kind := func(kind string, mode config.KindMode, edit func(*kindFound)) kindFound {
		one := kindFound{PropagatedKind: config.PropagatedKind{Kind: kind, Mode: mode}}
		if edit != nil {
			edit(&one)
		}
		return one
	}
	for name, c := range map[string]struct {
		found []kindFound
		want  Status
		says  string
	}{
		"at rest": {[]kindFound{kind("Secret", "OptIn", nil), kind("ConfigMap", "All", nil)}, OK,
			"all propagated kinds are served, and their modes need no action from you"},
		"removed": {[]kindFound{kind("Secret", "Remove", func(k *kindFound) { k.kept = 2 })}, OK,
			"mode Remove has deleted all copies of Secret: take Secret out of propagation.kinds"},
		"removing": {[]kindFound{kind("Secret", "Remove", func(k *kindFound) { k.copies, k.kept = 3, 2 })}, Warning,
			"mode Remove deletes the copies of Secret (3 copies, and 2 in mode create that stay)"},
		"in conflict": {[]kindFound{kind("Role", "All", func(k *kindFound) { k.troubles = troubles{"Conflict": {"b", "a"}} })}, Warning,
			"mode All: copies of Role in a, b are not written, because other objects have their names"},
		"PROP-X10 check kinds warns of kinds in mode All whose copies are refused or held back by limits, with namespaces": {
			[]kindFound{
				kind("Role", "All", func(k *kindFound) { k.troubles = troubles{"Rejected": {"a"}, "DescendantConflict": {"b"}} }),
				kind("Secret", "All", func(k *kindFound) { k.troubles = troubles{"LimitExceeded": {"b"}} }),
				kind("ConfigMap", "OptIn", nil),
			}, Warning,
			"mode All: copies of Role in a are refused; mode All: limits of tenants hold back copies of Secret in b",
		},
		"PROP-X10 check kinds is ok, and names objects that are left out by label none, select or neverPropagate": {
			[]kindFound{
				kind("Role", "All", func(k *kindFound) { k.leftOut = leftOut{byLabel: {"Role b/x"}, bySelector: {"Role b/y"}} }),
				kind("Secret", "All", func(k *kindFound) { k.leftOut = leftOut{byLabel: {"Secret a/x"}, byConfiguration: {"Secret a/z"}} }),
			}, OK,
			"all propagated kinds are served, and their modes need no action from you; mode All leaves out 2 objects with label " +
				"tenancy.warren.dev/propagate=none: Role b/x, Secret a/x; " +
				"mode All leaves out 1 object that propagation.neverPropagate names: Secret a/z; mode All copies 1 object only to namespaces " +
				"that annotation tenancy.warren.dev/select selects: Role b/y",
		},
		"PROP-X10 check kinds warns of objects with an invalid label or annotation, and names those with finalizers": {
			[]kindFound{kind("Role", "All", func(k *kindFound) { k.leftOut = leftOut{unsoundSource: {"Role b/x"}, byFinalizers: {"Role b/y"}} })},
			Warning,
			"mode All: copies of objects with an invalid label tenancy.warren.dev/propagate or annotation " +
				"tenancy.warren.dev/select are neither written nor deleted: Role b/x; " +
				"mode All leaves out 1 object with finalizers: Role b/y",
		},
		"not served": {[]kindFound{kind("Nosuch", "All", func(k *kindFound) { k.unserved = true }), kind("Secret", "Remove", nil)}, Warning,
			"the API server doesn't serve Nosuch, so nothing of it is copied"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judgeKinds(c.found); got.Status != c.want || got.Message != c.says || (got.Advice == "") != (c.want == OK) {
				t.Errorf("%+v", got)
			}
		})
	}
}
