package doctor

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/internal/forest"
)

// troubles are the namespaces whose HierarchyConfiguration reports that copies of one kind are missing, by reason.
type troubles map[v1alpha1.Reason][]string

// namedCopy matches how condition Propagated names a missing copy, and captures the copy's kind.
var namedCopy = regexp.MustCompile(`(?:^|; )([A-Z][A-Za-z0-9]*) "[^"]*" from "`)

// readTroubles returns the troubles that HierarchyConfigurations report, by kind. A condition has only one reason, and
// names at most ten copies.
func (p Patient) readTroubles(ctx context.Context) (map[string]troubles, error) {
	told := map[string]troubles{}
	err := gather.ListEach(ctx, p.API, &v1alpha1.HierarchyConfigurationList{}, func(o client.Object) {
		propagated := v1alpha1.FindCondition(o.(*v1alpha1.HierarchyConfiguration).Status.Conditions,
			v1alpha1.ConditionPropagated)
		if propagated == nil || propagated.Status != metav1.ConditionFalse {
			return
		}
		reason := v1alpha1.Reason(propagated.Reason)
		for _, match := range namedCopy.FindAllStringSubmatch(propagated.Message, -1) {
			kind := match[1]
			if told[kind] == nil {
				told[kind] = troubles{}
			}
			if !slices.Contains(told[kind][reason], o.GetNamespace()) {
				told[kind][reason] = append(told[kind][reason], o.GetNamespace())
			}
		}
	})
	return told, err
}

// nameIn appends the kind and the namespaces that report a reason, if any does.
func (t troubles) nameIn(list []string, kind string, reason v1alpha1.Reason) []string {
	if len(t[reason]) == 0 {
		return list
	}
	return append(list, fmt.Sprintf("%s in %s", kind, forest.Few(t[reason])))
}
