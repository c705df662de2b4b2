package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
)

const (
	// requester asks for sudo in each tenant, and approver, its manager, decides.
	requester, approver = "carol", "mia"
	// grantWrites are the most writes of the operator for one grant: Job, Role, RoleBinding, and a status before and after the Job and at
	// the end.
	grantWrites = 6.0
)

// requestsBench measures sudo on request: one request of requester in each tenant. bench-t000 has the first.
type requestsBench struct {
	accessBench
	requests []*v1alpha1.SudoRequest
}

// measureRequests measures sudo on request beside standing sudo in the same tenants: how soon it begins and ends, and what the operator
// writes. taken is how long each sudoer who was taken off still had sudo. No tenant has a sudoer when it begins.
func (b accessBench) measureRequests(ctx context.Context, tenants int, taken []time.Duration) ([]result, error) {
	grants := tenants / 4
	added, err := b.timeStandingGrants(ctx, grants)
	if err != nil {
		return nil, err
	}
	r := &requestsBench{accessBench: b}
	if err := r.plantRequests(ctx, tenants, grants); err != nil {
		return nil, err
	}
	begun, writes, err := r.timeDecisions(ctx, v1alpha1.SudoApprove, untilAllowed)
	if err != nil {
		return nil, err
	}
	rest, err := b.writesAtRest(ctx, tenants)
	if err != nil {
		return nil, err
	}
	rest.id, rest.text = "R4", fmt.Sprintf("%d grants in force: %s", grants, rest.text)
	ended, ending, err := r.timeDecisions(ctx, v1alpha1.SudoEnd, untilRefused)
	if err != nil {
		return nil, err
	}
	most := slices.Max(ended)
	return []result{
		{id: "S2", told: true, text: describeTimes("sudoer added until allowed", added)},
		{id: "R1", told: true, text: describeTimes("approval until allowed", begun) + describeRatio(begun, added)},
		{id: "R2", passed: most < revocation, text: describeTimes("decision End until refused", ended) + describeRatio(ended, taken) +
			fmt.Sprintf(" budget %.0fms", ms(revocation))},
		{id: "R3", counted: true, passed: writes.perRequest() <= grantWrites && len(writes.all) > 0,
			text: fmt.Sprintf("writes for one grant: %s budget %.2f", writes, grantWrites)},
		{id: "R3", told: true, text: fmt.Sprintf("writes for one decision End: %s", ending)},
		rest,
	}, nil
}

// timeStandingGrants makes sudoer one of the first tenants again, one after the other, and asks with sudo until it is allowed.
func (b accessBench) timeStandingGrants(ctx context.Context, tenants int) (all []time.Duration, err error) {
	for i := range tenants {
		tenant := tenantName(i)
		begin := time.Now()
		if err := b.setList(ctx, tenant, "sudoers", build.Users(sudoer)); err != nil {
			return nil, err
		}
		if err := untilAllowed(ctx, b.buildAsk(tenant)); err != nil {
			return nil, fmt.Errorf("sudo of %s after the sudoer was added: %w", tenant, err)
		}
		all = append(all, time.Since(begin))
	}
	return all, b.waitForIdle(ctx)
}

// plantRequests lets requester ask for sudo in all tenants, and makes one request in each of the first ones.
func (r *requestsBench) plantRequests(ctx context.Context, tenants, requests int) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{
		"sudoRequests": v1alpha1.SudoRequests{Eligible: build.Users(requester)}}})
	if err != nil {
		return err
	}
	err = inParallel(ctx, tenants, func(ctx context.Context, i int) error {
		return r.Admin().Patch(ctx, build.Tenant(tenantName(i)).Object(), client.RawPatch(types.MergePatchType, patch))
	})
	if err != nil {
		return err
	}
	for i := range tenants {
		if err := r.waitForAccess(ctx, tenantName(i)); err != nil {
			return err
		}
	}
	for i := range requests {
		r.requests = append(r.requests, &v1alpha1.SudoRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: tenantName(i), Name: "bench"},
			Spec:       v1alpha1.SudoRequestSpec{User: requester, Reason: "Measure the grant", Duration: "2h", Decisions: []v1alpha1.SudoDecision{}},
		})
		if err := r.As(requester).Create(ctx, r.requests[i]); err != nil {
			return err
		}
	}
	return r.waitForReason(ctx, v1alpha1.ReasonPending)
}

// waitForReason waits until all requests have a reason, and the operator is idle.
func (r *requestsBench) waitForReason(ctx context.Context, reason v1alpha1.Reason) error {
	err := waitFor(ctx, "requests that are "+string(reason), func(ctx context.Context) (bool, error) {
		list, having := &v1alpha1.SudoRequestList{}, 0
		err := r.Admin().List(ctx, list)
		for _, one := range list.Items {
			if c := v1alpha1.FindCondition(one.Status.Conditions, v1alpha1.ConditionActive); c != nil && c.Reason == string(reason) {
				having++
			}
		}
		return having == len(r.requests), err
	})
	if err != nil {
		return err
	}
	return r.waitForIdle(ctx)
}

// timeDecisions has approver decide on one request after the other, and asks as the temporary sudoer until it has the answer that until
// waits for. It returns what the operator has written for all of them, too.
func (r *requestsBench) timeDecisions(ctx context.Context, verdict v1alpha1.SudoVerdict,
	until func(context.Context, func(context.Context) error) error) (all []time.Duration, w requestWrites, err error) {
	mark, err := r.Mark(ctx)
	if err != nil {
		return nil, w, err
	}
	patch := fmt.Appendf(nil, `[{"op":"add","path":"/spec/decisions/-","value":{"user":%q,"verdict":%q}}]`, approver, verdict)
	for _, request := range r.requests {
		as := r.Impersonate(requester, rest.ImpersonationConfig{UserName: v1alpha1.TemporarySudoer(request.Namespace)})
		ask := func(ctx context.Context) error {
			return as.List(ctx, &corev1.PodList{}, client.InNamespace(request.Namespace))
		}
		begin := time.Now()
		if err := r.As(approver).Patch(ctx, request.DeepCopy(), client.RawPatch(types.JSONPatchType, patch)); err != nil {
			return nil, w, err
		}
		if err := until(ctx, ask); err != nil {
			return nil, w, fmt.Errorf("sudo on request of %s after decision %s: %w", request.Namespace, verdict, err)
		}
		all = append(all, time.Since(begin))
	}
	reason := map[v1alpha1.SudoVerdict]v1alpha1.Reason{v1alpha1.SudoApprove: v1alpha1.ReasonGranted, v1alpha1.SudoEnd: v1alpha1.ReasonEnded}
	if err := r.waitForReason(ctx, reason[verdict]); err != nil {
		return nil, w, err
	}
	w.requests = len(r.requests)
	w.all, err = r.Writes(ctx, mark)
	return all, w, err
}

// requestWrites are the writes of the operator for a number of requests.
type requestWrites struct {
	all      []audit.Request
	requests int
}

func (w requestWrites) perRequest() float64 { return float64(len(w.all)) / float64(w.requests) }

// String is the number of writes for one request, with that of each resource.
func (w requestWrites) String() string {
	counts := map[string]float64{}
	for _, one := range w.all {
		counts[strings.TrimSuffix(one.Verb+" "+one.Resource+"/"+one.Subresource, "/")]++
	}
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%.2f %s", counts[what]/float64(w.requests), what))
	}
	return fmt.Sprintf("%.2f (%s)", w.perRequest(), strings.Join(parts, ", "))
}

// describeTimes states the median and the 99th percentile by the nearest rank.
func describeTimes(what string, all []time.Duration) string {
	sorted := slices.Sorted(slices.Values(all))
	p99 := sorted[(99*len(sorted)+99)/100-1]
	return fmt.Sprintf("%s, %d times: p50 %.0fms p99 %.0fms max %.0fms", what, len(sorted), ms(medianOf(all)), ms(p99), ms(slices.Max(all)))
}

// describeRatio compares medians with those of standing sudo in the same run.
func describeRatio(all, standing []time.Duration) string {
	return fmt.Sprintf(" ratio %.2f to standing sudo", float64(medianOf(all))/float64(medianOf(standing)))
}

// untilAllowed asks again and again, without a pause, for a minute at most.
func untilAllowed(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if err := ask(ctx); !apierrors.IsForbidden(err) {
			return err
		}
	}
}
