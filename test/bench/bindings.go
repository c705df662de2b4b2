package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
	"github.com/warren-tenancy/warren/test/build"
)

const (
	// bystander is the user whose requests are measured: a user of one namespace who belongs to no tenant.
	bystander          = "erin"
	bystanderNamespace = "bench-bystander"
)

// crowd is a number of tenants that are alike. No person belongs to two of them.
type crowd struct {
	name, prefix string // prefix of the tenants' names
	tenants      int
	lists        func(tenant *build.LNamespace, name string) *build.LNamespace
	judged       bool
}

// crowds returns the crowds that are measured; the first one is empty, and the others are compared with it.
func crowds(small bool) []crowd {
	one := func(t *build.LNamespace, name string) *build.LNamespace {
		return t.Managers(name + "-a").Sudoers(name + "-a")
	}
	two := func(t *build.LNamespace, name string) *build.LNamespace {
		return t.Managers(name + "-m").Sudoers(name + "-a")
	}
	three := func(t *build.LNamespace, name string) *build.LNamespace {
		return t.Managers(name+"-m").Sudoers(name+"-a", name+"-b")
	}
	few, many := 1000, 2500
	if small {
		few, many = 20, 50
	}
	return []crowd{
		{name: "no tenant"},
		{name: "whose maker is manager and sudoer", prefix: "one", tenants: few, lists: one, judged: true},
		{name: "whose maker is manager and sudoer", prefix: "one", tenants: many, lists: one},
		{name: "with a manager and a sudoer", prefix: "two", tenants: few, lists: two},
		{name: "with a manager and two sudoers", prefix: "three", tenants: few, lists: three},
	}
}

// bindings returns the ClusterRoleBindings that the operator writes for the crowd, by name.
func (c crowd) bindings() map[string]*rbacv1.ClusterRoleBinding {
	bindings := map[string]*rbacv1.ClusterRoleBinding{}
	for i := range c.tenants {
		name := fmt.Sprintf("bench-%s-%04d", c.prefix, i)
		tenant := c.lists(build.Tenant(name), name).Object()
		for _, binding := range grants.For(tenant, grants.Facts{Forms: grants.FormsOf(v1alpha1.SudoLegacy)}).Bindings() {
			binding.OwnerReferences = nil // the garbage collector would delete bindings of tenants that don't exist
			bindings[binding.Name] = binding
		}
	}
	return bindings
}

// bindingsBench measures what the ClusterRoleBindings of tenants add to all requests: Kubernetes reads every one of them whenever it
// authorizes a request.
type bindingsBench struct {
	*bench
	requests int
	planted  map[string]*rbacv1.ClusterRoleBinding
}

// bystanderRequest is a request whose cost is measured.
type bystanderRequest struct {
	name, namespace string
	refused         bool
	// budget is the largest quotient that is allowed: the API server's CPU time for the request while there are 1,000 tenants, divided
	// by that while there are none.
	budget float64
}

var bystanderRequests = []bystanderRequest{{"GET", bystanderNamespace, false, 1.8}, {"denied GET", "default", true, 2.5}}

// measureBindings measures B12. No operator runs, so that the bindings can come and go within one run. The crowds take turns, in every
// other round in reverse order.
func measureBindings(ctx context.Context, on *bench) ([]result, error) {
	b := &bindingsBench{bench: on, requests: 3000}
	if b.scale.small {
		b.requests = 300
	}
	for _, object := range []client.Object{
		build.Namespace(bystanderNamespace), build.ConfigMap(bystanderNamespace, "settings", "v"),
		build.RoleBinding(bystanderNamespace, bystander, "view", build.RBACUser(bystander)),
	} {
		if err := b.Admin().Create(ctx, object); err != nil {
			return nil, err
		}
	}
	all := crowds(b.scale.small)
	costs := make([][]crowdCost, len(all))
	for round := range b.scale.rounds {
		for i := range all {
			if round%2 == 1 {
				i = len(all) - 1 - i
			}
			c, err := b.measureCrowd(ctx, all[i])
			if err != nil {
				return nil, fmt.Errorf("round %d, %d tenants %s: %w", round, all[i].tenants, all[i].name, err)
			}
			costs[i] = append(costs[i], c)
		}
	}
	var results []result
	for i, c := range all {
		for r := range bystanderRequests {
			results = append(results, c.judge(r, costs[i], costs[0]))
		}
		if c.judged {
			bindings := costs[i][0].bindings
			results = append(results, result{id: "B12", counted: true, passed: bindings == c.tenants,
				text: fmt.Sprintf("ClusterRoleBindings of %d tenants %s: %d budget %d", c.tenants, c.name, bindings, c.tenants)})
		}
	}
	return results, nil
}

// crowdCost is what one round measured of a crowd.
type crowdCost struct {
	bindings int
	cpu      [2]float64 // seconds of CPU time of the API server for each of the bystanderRequests
}

func (b *bindingsBench) measureCrowd(ctx context.Context, c crowd) (crowdCost, error) {
	wanted := c.bindings()
	measured := crowdCost{bindings: len(wanted)}
	if err := b.plantBindings(ctx, wanted); err != nil {
		return measured, err
	}
	if err := b.waitForRest(ctx); err != nil {
		return measured, err
	}
	for i, r := range bystanderRequests {
		var err error
		if measured.cpu[i], err = b.measureRequest(ctx, r); err != nil {
			return measured, err
		}
	}
	return measured, nil
}

// plantBindings makes the wanted ClusterRoleBindings the only ones of tenants in the cluster.
func (b *bindingsBench) plantBindings(ctx context.Context, wanted map[string]*rbacv1.ClusterRoleBinding) error {
	superfluous, missing := maps.Clone(b.planted), maps.Clone(wanted)
	maps.DeleteFunc(superfluous, func(name string, _ *rbacv1.ClusterRoleBinding) bool { return wanted[name] != nil })
	maps.DeleteFunc(missing, func(name string, _ *rbacv1.ClusterRoleBinding) bool { return b.planted[name] != nil })
	gone, fresh := slices.Collect(maps.Values(superfluous)), slices.Collect(maps.Values(missing))
	if err := inParallel(ctx, len(gone), func(ctx context.Context, i int) error { return b.Admin().Delete(ctx, gone[i]) }); err != nil {
		return err
	}
	b.planted = wanted
	return inParallel(ctx, len(fresh), func(ctx context.Context, i int) error { return b.Admin().Create(ctx, fresh[i].DeepCopy()) })
}

// waitForRest waits until the API server has been nearly idle for a second: all watches have brought the bindings by then.
func (b *bindingsBench) waitForRest(ctx context.Context) error {
	const nearlyIdle = 0.1 // of a core
	return waitFor(ctx, "an API server at rest", func(ctx context.Context) (bool, error) {
		spent, err := b.cpuDuring(func() error {
			select {
			case <-time.After(time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		return spent < nearlyIdle, err
	})
}

// measureRequest returns the CPU time that the API server spends on one such request, in seconds.
func (b *bindingsBench) measureRequest(ctx context.Context, r bystanderRequest) (float64, error) {
	user := b.As(bystander)
	send := func(ctx context.Context, _ int) error {
		err := user.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: "settings"}, &corev1.ConfigMap{})
		if r.refused {
			if apierrors.IsForbidden(err) {
				return nil
			}
			return fmt.Errorf("the %s in namespace %s was answered otherwise: %w", r.name, r.namespace, err)
		}
		return err
	}
	if err := inParallel(ctx, b.requests/10, send); err != nil { // these warm up
		return 0, err
	}
	spent, err := b.cpuDuring(func() error { return inParallel(ctx, b.requests, send) })
	return spent / float64(b.requests), err
}

// cpuDuring returns the CPU time of the API server while do runs, in seconds.
func (b *bindingsBench) cpuDuring(do func() error) (float64, error) {
	before, err := readCPUTime(b.ControlPlane.APIServer.PID())
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := readCPUTime(b.ControlPlane.APIServer.PID())
	return after - before, err
}

// judge compares a crowd with the empty one, round by round.
func (c crowd) judge(request int, costs, empty []crowdCost) result {
	var ratios, each []float64
	for i := range costs {
		each = append(each, 1000*costs[i].cpu[request])
		ratios = append(ratios, costs[i].cpu[request]/empty[i].cpu[request])
	}
	name, budget := bystanderRequests[request].name, bystanderRequests[request].budget
	if c.tenants == 0 {
		return result{id: "B12", told: true, text: fmt.Sprintf("CPU of the API server for a %s, no tenant: %.2fms", name, medianOf(each))}
	}
	r := result{id: "B12", told: !c.judged, passed: medianOf(ratios) <= budget}
	r.text = fmt.Sprintf("CPU of the API server for a %s, %d tenants %s, %d ClusterRoleBindings: %.2fms ratio %.2f (min %.2f max %.2f)",
		name, c.tenants, c.name, costs[0].bindings, medianOf(each), medianOf(ratios), slices.Min(ratios), slices.Max(ratios))
	if c.judged {
		r.text += fmt.Sprintf(" budget %.2f", budget)
	}
	return r
}
