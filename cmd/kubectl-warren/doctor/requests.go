package doctor

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/manifests"
)

const requestsName = "component/requests"

// requestFacts are what the check of sudo on request looks at.
type requestFacts struct {
	served bool
	// users are the tenants that set spec.sudoRequests.
	users    []string
	requests []v1alpha1.SudoRequest
	// policies are the checks of the policies of the component; none where the first two are missing.
	policies []Check
	now      time.Time
}

// checkRequests checks whether sudo on request ends by itself: the policies of its component, and the timers of the requests.
func (p Patient) checkRequests(ctx context.Context, policies []admissionv1.ValidatingAdmissionPolicy,
	bindings []admissionv1.ValidatingAdmissionPolicyBinding) Check {
	f := requestFacts{now: time.Now()}
	shipped := []manifests.Policy{manifests.SudoRequests, manifests.TemporarySudo, manifests.SudoTimers}
	if findPolicy(policies, shipped[0].Name) != nil || findPolicy(policies, shipped[1].Name) != nil {
		for _, e := range shipped {
			f.policies = append(f.policies, checkPolicy(e, policies, bindings, v1alpha1.OperatorUser(p.Namespace)))
		}
	}
	_, err := p.Served.RESTMapping(schema.GroupKind{Group: v1alpha1.Domain, Kind: "SudoRequest"}, v1alpha1.GroupVersion.Version)
	if err != nil && !meta.IsNoMatchError(err) {
		return warnOf(requestsName, "it is not known whether the API server serves SudoRequests: "+err.Error(), "check --server and --context")
	}
	f.served = err == nil
	if err := gather.ListEach(ctx, p.API, &v1alpha1.LNamespaceList{}, func(o client.Object) {
		if o.(*v1alpha1.LNamespace).Spec.SudoRequests != nil {
			f.users = append(f.users, o.GetName())
		}
	}); err != nil {
		return warnOfFailedList(requestsName, "LNamespaces", err)
	}
	if f.served {
		if err := gather.ListEach(ctx, p.API, &v1alpha1.SudoRequestList{}, func(o client.Object) {
			f.requests = append(f.requests, *o.(*v1alpha1.SudoRequest))
		}); err != nil {
			return warnOfFailedList(requestsName, "SudoRequests", err)
		}
	}
	return f.judge()
}

// endTolerance is how long after its end a right may still be reported: the controller manager and the operator need a moment.
const endTolerance = 30 * time.Second

// judge returns the worst that the facts show.
func (f *requestFacts) judge() Check {
	reports := f.listReports()
	switch {
	case !f.served && len(f.users) > 0:
		return warnOf(requestsName, "spec.sudoRequests is set for "+forest.Few(f.users)+
			", but component requests is not installed: nobody can ask", "add component requests to your overlay, or remove spec.sudoRequests")
	case !f.served:
		return passOf(requestsName, "not installed")
	case len(f.policies) == 0:
		return failOf(requestsName, "the API server serves SudoRequests, but the policies of the component are missing: nothing is "+
			"granted, and people may write SudoRequests in other names", "apply component requests of your overlay again")
	}
	for _, check := range f.policies {
		if check.Status == Error {
			return failOf(requestsName, check.Name+": "+check.Message+": nothing is granted, or nothing ends it in time",
				"apply component requests of your overlay again")
		}
	}
	if late := reports.late; len(late) > 0 {
		return failOf(requestsName, "the time of these is over, and their right was not ended: "+forest.Few(late),
			"see whether kube-controller-manager runs with the controllers ttl-after-finished-controller and garbage-collector-controller, "+
				"and the operator; kubectl delete jobs --all -n "+v1alpha1.SudoNamespace+" ends all")
	}
	if held := reports.held; len(held) > 0 {
		return failOf(requestsName, "finalizers of others hold the ended right of "+forest.Few(held),
			"remove the finalizers that the message of condition Active names")
	}
	if missing := reports.missing; len(missing) > 0 {
		return warnOf(requestsName, "the controller manager doesn't complete the timers of "+forest.Few(missing)+": nothing is granted",
			"see whether kube-controller-manager runs its job controller, and whether a policy of yours rejects Jobs in "+v1alpha1.SudoNamespace)
	}
	return passOf(requestsName, fmt.Sprintf("in force; %d of %d requests are granted now", reports.granted, len(f.requests)))
}

// requestReports are the requests that something is wrong with, as TENANT/NAME.
type requestReports struct {
	granted             int
	late, held, missing []string
}

func (f *requestFacts) listReports() (r requestReports) {
	for i := range f.requests {
		one := &f.requests[i]
		active := v1alpha1.FindCondition(one.Status.Conditions, v1alpha1.ConditionActive)
		if active == nil {
			continue
		}
		name := one.Namespace + "/" + one.Name
		switch v1alpha1.Reason(active.Reason) {
		case v1alpha1.ReasonNotEnded:
			r.held = append(r.held, name)
		case v1alpha1.ReasonTimerMissing:
			r.missing = append(r.missing, name)
		case v1alpha1.ReasonGranted:
			r.granted++
			if end := one.Status.EndTime; end != nil && f.now.After(end.Add(endTolerance)) {
				r.late = append(r.late, name)
			}
		}
	}
	return r
}
