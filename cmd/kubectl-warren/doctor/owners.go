package doctor

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/internal/forest"
)

// checkOwners looks for LNamespaces and SubNamespaces whose name a namespace has that is not theirs. That namespace may
// be a stranger's, or it was theirs and somebody replaced it by a manifest without our keys, so that its rights and
// copies are gone.
func (p Patient) checkOwners(ctx context.Context) Check {
	const name = "owners"
	var without []string
	err := gather.ListEach(ctx, p.API, &v1alpha1.LNamespaceList{}, func(o client.Object) {
		ready := v1alpha1.FindCondition(o.(*v1alpha1.LNamespace).Status.Conditions, v1alpha1.ConditionNamespaceReady)
		if ready != nil && ready.Reason == string(v1alpha1.ReasonNamespaceConflict) {
			without = append(without, "LNamespace "+o.GetName())
		}
	})
	if err != nil {
		return warnOfFailedList(name, "LNamespaces", err)
	}
	err = gather.ListEach(ctx, p.API, &v1alpha1.SubNamespaceList{}, func(o client.Object) {
		if o.(*v1alpha1.SubNamespace).NameLost() {
			without = append(without, "SubNamespace "+o.GetNamespace()+"/"+o.GetName())
		}
	})
	if err != nil {
		return warnOfFailedList(name, "SubNamespaces", err)
	}
	if len(without) == 0 {
		return passOf(name, "each LNamespace and SubNamespace has the namespace of its name, or waits for it")
	}
	return warnOf(name, "the namespaces of these names are not theirs: "+forest.Few(without),
		"if one was theirs before, its message names the command "+
			"that puts it back: kubectl describe lns NAME, or kubectl describe subns NAME -n PARENT; else delete the object")
}
