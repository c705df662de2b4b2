package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/grants"
)

// manyBindings is the number of Warren's ClusterRoleBindings at which doctor begins to warn. With so many, a request
// costs the API server about one and a half times the CPU time of a request without them: see B12 in
// docs/benchmarks.md.
const manyBindings = 1000

// checkBindings counts the ClusterRoleBindings, because the API server reads all of them for each request of any user. It warns of those
// that only bear a name of the operator's: whoever once had its token may have left them.
func (p Patient) checkBindings(ctx context.Context) Check {
	const name = "cluster-role-bindings"
	total, ours, byAccess := 0, 0, map[string]int{}
	var strange []string
	err := gather.ListMetadata(ctx, p.API, rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), func(o *metav1.PartialObjectMetadata) {
		total++
		if access := o.GetLabels()[v1alpha1.LabelAccess]; access != "" {
			ours++
			byAccess[access]++
		}
		if grants.LacksLabels(o) {
			strange = append(strange, o.GetName())
		}
	})
	if err != nil {
		return warnOfFailedList(name, "ClusterRoleBindings", err)
	}
	if strange != nil {
		return warnOf(name, "these bear names of the operator's, but not its labels, so it neither wrote them nor removes them: "+
			forest.Few(strange),
			"see whom each binds, and delete it unless you made it: kubectl get clusterrolebinding NAME -o yaml")
	}
	var parts []string
	for _, access := range slices.Sorted(maps.Keys(byAccess)) {
		parts = append(parts, fmt.Sprintf("%s %d", access, byAccess[access]))
	}
	message := fmt.Sprintf("%d of %d are for tenants", ours, total)
	if len(parts) > 0 {
		message += " (" + strings.Join(parts, ", ") + ")"
	}
	if ours < manyBindings {
		return passOf(name, message)
	}
	return warnOf(name, message+"; the API server reads all of them for each request of any user",
		"list fewer users as sudoers: each tenant has two bindings, and each user who is a sudoer, of however many tenants, has one more; a "+
			"tenant whose only manager and only sudoer are the same user has one binding in all (B12 in docs/benchmarks.md)")
}
