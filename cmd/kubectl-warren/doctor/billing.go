package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/internal/forest"
)

// checkBilling checks the ledger by condition BillingExported of the tenants.
func (p Patient) checkBilling(ctx context.Context, f file) Check {
	told := billingTold{reasons: map[string][]string{}}
	err := gather.ListEach(ctx, p.API, &v1alpha1.LNamespaceList{}, func(o client.Object) {
		told.countTenant(o.GetName(), v1alpha1.FindCondition(o.(*v1alpha1.LNamespace).Status.Conditions, v1alpha1.ConditionBillingExported))
	})
	if err != nil {
		return warnOfFailedList(billingName, "LNamespaces", err)
	}
	return judgeBilling(f, told)
}

const billingName = "billing"

// billingTold summarises condition BillingExported over all tenants.
type billingTold struct {
	tenants, exported int
	// reasons has, by the reason why the condition isn't True, the names of the tenants.
	reasons map[string][]string
}

func (b *billingTold) countTenant(tenant string, condition *metav1.Condition) {
	b.tenants++
	switch {
	case condition == nil:
	case condition.Status == metav1.ConditionTrue:
		b.exported++
	default:
		b.reasons[condition.Reason] = append(b.reasons[condition.Reason], tenant)
	}
}

func judgeBilling(f file, told billingTold) Check {
	driver := "a driver"
	if f.unknown == nil {
		driver = "billing.driver " + string(f.config.Billing.Driver)
		if f.config.Billing.Driver == config.DriverNone {
			return passOf(billingName, "off: billing.driver is none")
		}
	}
	if idle := told.reasons[string(v1alpha1.ReasonNotRunning)]; len(idle) > 0 {
		return failOf(billingName, fmt.Sprintf("%s is configured, but no billing exporter is running for %d of %d tenants", driver,
			len(idle), told.tenants),
			"deploy the component of the driver, or look at the log of Deployment warren-billing-exporter")
	}
	if len(told.reasons) > 0 {
		var parts []string
		for _, reason := range slices.Sorted(maps.Keys(told.reasons)) {
			parts = append(parts, reason+": "+forest.Few(told.reasons[reason]))
		}
		return warnOf(billingName, "the ledger does not have all changes of these tenants: "+strings.Join(parts, "; "),
			"read the message of condition BillingExported of these tenants")
	}
	switch {
	case told.exported > 0:
		return passOf(billingName, fmt.Sprintf("condition BillingExported is True for %d of %d tenants", told.exported, told.tenants))
	case f.unknown != nil:
		return warnOf(billingName, "no tenant has condition BillingExported, and the operator's configuration is not known: "+f.unknown.Error(),
			f.stepToKnow())
	}
	return warnOf(billingName, driver+" is configured, and no tenant has condition BillingExported yet",
		"create a tenant if there is none, and run this again half a minute later")
}
