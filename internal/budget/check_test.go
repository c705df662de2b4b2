package budget_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/test/build"
)

// The integration test of the CRDs has the same table.
func TestCheck(t *testing.T) {
	for _, tc := range build.Budgets() {
		t.Run(tc.Name, func(t *testing.T) {
			got := budget.Check(tc.Hard)
			want := []string(nil)
			if tc.Refusal != "" {
				want = []string{tc.Refusal}
			}
			if len(tc.Hard) > budget.MaxKeys {
				want = []string{"must have at most 16 keys: it has 17"}
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// isRefused reports whether Kubernetes refuses an amount in a ResourceQuota. The rules are those of ValidateResourceQuantityValue and
// ValidateResourceQuotaResourceName; the integration test of the CRDs asks an API server.
func isRefused(key corev1.ResourceName, amount resource.Quantity) bool {
	name, counts := string(key), sets.New[corev1.ResourceName]("pods", "services", "replicationcontrollers", "resourcequotas", "secrets",
		"configmaps", "persistentvolumeclaims", "services.nodeports", "services.loadbalancers")
	native := !strings.Contains(name, "/") || strings.Contains(name, "kubernetes.io/")
	extended := !native && !strings.HasPrefix(name, "requests.") && len(validation.IsQualifiedName("requests."+name)) == 0
	return len(validation.IsQualifiedName(name)) > 0 || amount.Sign() < 0 || (extended || counts.Has(key)) && amount.MilliValue()%1000 != 0
}

func FuzzLimitedBudgetsAreWritable(f *testing.F) {
	for _, key := range []string{"example.com/memory", "example.com/storage", "example.com/hugepages-1", "count/pods", "example.com/gpu",
		"pods",
		"requests.example.com/memory", "requests.storage", "memory", "requests.cpu", "requests.hugepages-2Mi", "hugepages-2mi.example.com/x",
		"gold.storageclass.storage.k8s.io/requests.storage", "gpu.deviceclass.resource.k8s.io/devices", "a..b/x", "count/x_", "requests.a/b"} {
		for _, text := range []string{"8E", "7Ei", "9223372036854775807", "1E", "1P", "0", "1500m", "9007199254740992", "1n", "8191Pi"} {
			f.Add(key, text)
		}
	}
	f.Fuzz(func(t *testing.T, key, text string) {
		amount, err := resource.ParseQuantity(text)
		if err != nil {
			return
		}
		hard := v1alpha1.Budget{corev1.ResourceName(key): amount}
		amounts, problems := budget.Limited(hard)
		if len(amounts)+len(problems) != 1 || !slices.Equal(problems, budget.Check(hard)) {
			t.Errorf("%s %s: %v, %q", key, text, amounts, problems)
		}
		for key, limit := range amounts {
			// Shares are amounts up to the limit.
			for _, share := range []int64{0, 1, limit / 2, max(limit-1, 0), limit} {
				if written := (budget.Amounts{key: share}).List()[key]; isRefused(key, written) {
					t.Errorf("%s of a limit of %s: the API server refuses %s", key, text, written.String())
				}
			}
		}
	})
}
