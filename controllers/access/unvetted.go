package access

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/text"
)

// grantedCondition returns the reason and message of AccessReady when there is no finding. They also show whether the
// ClusterRole of users grants dangerous rights. unvettedRights may be nil: then none are known to be dangerous.
func grantedCondition(unvettedRights func() []string) (v1alpha1.Reason, string) {
	const everything = "all rights that the lists ask for are granted"
	if unvettedRights == nil {
		return v1alpha1.ReasonGranted, everything
	}
	unvetted := unvettedRights()
	if len(unvetted) == 0 {
		return v1alpha1.ReasonGranted, everything
	}
	return v1alpha1.ReasonGrantedUnvetted,
		text.Cut(fmt.Sprintf("%s, but users hold more than is safe (a cluster admin can run kubectl warren vet): %s",
			everything, strings.Join(unvetted, "; ")), 1024)
}

// sourceOrNone returns wanted or, if that is nil, a source that never requeues anything.
func sourceOrNone(wanted source.Source) source.Source {
	if wanted != nil {
		return wanted
	}
	return source.Func(func(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error { return nil })
}
