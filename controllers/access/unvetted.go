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

// grantedCondition is what AccessReady says where nothing is wrong: also whether the ClusterRole of users grants what is dangerous.
func (r *Reconciler) grantedCondition() (v1alpha1.Reason, string) {
	const everything = "everything that the lists say is granted"
	if r.Unvetted == nil {
		return v1alpha1.ReasonGranted, everything
	}
	unvetted := r.Unvetted()
	if len(unvetted) == 0 {
		return v1alpha1.ReasonGranted, everything
	}
	return v1alpha1.ReasonGrantedUnvetted, text.Cut(fmt.Sprintf("%s, but users hold more than is safe (a cluster admin can run kubectl warren vet): %s",
		everything, strings.Join(unvetted, "; ")), 1024)
}

// vettingSource is the source that asks for all tenants when Unvetted may say something else; one that never does if there is none.
func (r *Reconciler) vettingSource() source.Source {
	if r.Vetting != nil {
		return r.Vetting
	}
	return source.Func(func(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error { return nil })
}
