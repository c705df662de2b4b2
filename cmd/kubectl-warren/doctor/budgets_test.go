package doctor

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
)

func TestBudgets(t *testing.T) {
	for name, c := range map[string]struct {
		tenants map[v1alpha1.Reason][]string
		status  Status
		message string
	}{
		"none":     {nil, OK, "no tenant has a budget"},
		"all hold": {map[v1alpha1.Reason][]string{v1alpha1.ReasonEnforced: {"shop"}}, OK, "the budgets of all tenants hold"},
		"QUOTA-99 doctor names the tenants that use more than their budget allows": {
			map[v1alpha1.Reason][]string{v1alpha1.ReasonEnforced: {"shop"}, v1alpha1.ReasonExceeded: {"payments"}}, OK,
			"the budgets of all tenants hold; more is used than they allow by payments, so nothing new is admitted there"},
		"not installed": {map[v1alpha1.Reason][]string{v1alpha1.ReasonNotInstalled: {"payments"}}, Warning,
			"hard is set for payments, but component budgets is not installed"},
		"not allowed": {map[v1alpha1.Reason][]string{v1alpha1.ReasonForbidden: {"payments"}}, Warning,
			"the operator lacks rights for the budgets of payments"},
		"not counted": {map[v1alpha1.Reason][]string{v1alpha1.ReasonNotCounted: {"payments"}}, Warning,
			"Kubernetes has not counted a ResourceQuota of payments"},
	} {
		t.Run(name, func(t *testing.T) {
			check := judgeBudgets(c.tenants)
			if check.Status != c.status || !strings.HasPrefix(check.Message, c.message) || (check.Advice == "") != (c.status == OK) {
				t.Errorf("%+v", check)
			}
		})
	}
}

func TestPodsWithoutDefaults(t *testing.T) {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	cpu := corev1.ResourceList{"requests.cpu": resource.MustParse("9")}
	defaults := []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{"cpu": resource.MustParse("1")}}}
	share := func(namespace string, hard corev1.ResourceList) *corev1.ResourceQuota {
		return &corev1.ResourceQuota{ObjectMeta: meta(namespace, budget.QuotaName), Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api := fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&corev1.ResourceQuota{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		WithObjects(share("pay-web", cpu), share("pay-db", cpu), share("pay-api", corev1.ResourceList{"pods": resource.MustParse("9")}),
			&corev1.ResourceQuota{ObjectMeta: meta("other", "own"), Spec: corev1.ResourceQuotaSpec{Hard: cpu}},
			&corev1.LimitRange{ObjectMeta: meta("pay-db", "defaults"), Spec: corev1.LimitRangeSpec{Limits: defaults}}).Build()
	t.Run("QUOTA-77 doctor names the namespaces in which the budget counts requests and no LimitRange has defaults", func(t *testing.T) {
		check := Patient{API: api}.checkBudgets(t.Context())
		if check.Status != Warning || !strings.Contains(check.Message, "has defaults for them in pay-web:") || check.Advice == "" {
			t.Errorf("%+v", check)
		}
	})
}
