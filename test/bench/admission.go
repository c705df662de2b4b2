package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/test/build"
)

// owner is cluster-admin in the plain namespace and nowhere else, so that the policies make all their checks for this user's requests.
const owner = "carol"

// annotations is the number of annotations of a heavy Namespace.
const annotations = 1000

// request is a request whose duration is measured with our policies and without them.
type request struct {
	id, name string
	send     func(ctx context.Context, i int) error
	// ratio and slack are the budget: p50 with policies ≤ ratio × p50 without policies + slack.
	ratio float64
	slack time.Duration
}

// admissionBench measures requests with and without policies and webhooks.
type admissionBench struct{ *bench }

// measureAdmission measures what our policies, and webhooks where they are installed, add to a request: SEC-P5. The operator runs. Rounds
// with and without them take turns, because the speed of the machine changes over time.
func measureAdmission(ctx context.Context, on *bench) ([]result, error) {
	b := admissionBench{on}
	if err := b.startOperator(ctx); err != nil {
		return nil, err
	}
	if err := b.plantAdmission(ctx); err != nil {
		return nil, err
	}
	walls, err := b.findWalls(ctx)
	if err != nil {
		return nil, err
	}
	requests := b.readRequests()
	spent := map[string]map[bool][]time.Duration{}
	for _, r := range requests {
		spent[r.id] = map[bool][]time.Duration{}
	}
	for round := range b.scale.rounds {
		for _, with := range []bool{round%2 == 0, round%2 != 0} {
			if err := b.setWalls(ctx, walls, with); err != nil {
				return nil, err
			}
			for _, r := range requests {
				all, err := b.timeRequest(ctx, r)
				if err != nil {
					return nil, fmt.Errorf("round %d, %s: %w", round, r.name, err)
				}
				spent[r.id][with] = append(spent[r.id][with], medianOf(all))
			}
		}
	}
	var results []result
	for _, r := range requests {
		results = append(results, r.judge(spent[r.id][true], spent[r.id][false]))
	}
	return results, b.setWalls(ctx, walls, true)
}

// plantAdmission makes a namespace outside of the forest with many annotations, and the root of a tree.
func (b admissionBench) plantAdmission(ctx context.Context) error {
	plain := build.Namespace("bench-plain")
	plain.Annotations = map[string]string{}
	for i := range annotations {
		plain.Annotations[fmt.Sprintf("example.com/key-%d", i)] = "some value of some length"
	}
	for _, object := range []client.Object{
		plain, build.RoleBinding(plain.Name, owner, "cluster-admin", build.RBACUser(owner)), build.Secret(plain.Name, "unrelated", "v"),
		build.Root(root), build.ClusterRole("bench-cl", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"},
			Verbs: []string{"get", "update", "patch"}}),
		build.ClusterRoleBinding("bench-cl", "bench-cl", build.RBACUser("dave")),
	} {
		if err := b.Admin().Create(ctx, object); err != nil {
			return err
		}
	}
	return b.waitForIdle(ctx)
}

func (b admissionBench) readRequests() []request {
	label := func(user, namespace string) func(context.Context, int) error {
		return func(ctx context.Context, i int) error {
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"example.com/n":"v%d"}}}`, i))
			return b.As(user).Patch(ctx, build.Namespace(namespace), patch)
		}
	}
	secret := func(ctx context.Context, i int) error {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"stringData":{"key":"v%d"}}`, i))
		return b.As(owner).Patch(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "bench-plain", Name: "unrelated"}}, patch)
	}
	return []request{
		{"A1", fmt.Sprintf("label of a namespace outside the forest with %d annotations, by its owner", annotations), label(owner, "bench-plain"),
			1.3, 5 * time.Millisecond},
		{"A2", "label of a root, by who may update namespaces cluster-wide", label("dave", root), 1.3, 5 * time.Millisecond},
		{"A3", "update of an unrelated Secret", secret, 1.05, 0},
	}
}

// timeRequest sends a request many times, one after the other, and returns how long each took. The first ones warm up.
func (b admissionBench) timeRequest(ctx context.Context, r request) ([]time.Duration, error) {
	const warm = 10
	var all []time.Duration
	for i := range warm + b.scale.children {
		begin := time.Now()
		if err := r.send(ctx, int(begin.UnixNano()/1000)); err != nil {
			return nil, err
		}
		if i >= warm {
			all = append(all, time.Since(begin))
		}
	}
	return all, nil
}

// findWalls returns our policy bindings and webhook configurations as they are before the measurement.
func (b admissionBench) findWalls(ctx context.Context) ([]client.Object, error) {
	var walls []client.Object
	bindings := &admissionv1.ValidatingAdmissionPolicyBindingList{}
	if err := b.Admin().List(ctx, bindings, client.MatchingLabels{"app.kubernetes.io/name": "warren"}); err != nil {
		return nil, err
	}
	for i := range bindings.Items {
		walls = append(walls, &bindings.Items[i])
	}
	for _, configuration := range []client.Object{
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "warren"}},
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "warren"}},
	} {
		err := b.Admin().Get(ctx, client.ObjectKeyFromObject(configuration), configuration)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err == nil {
			walls = append(walls, configuration)
		}
	}
	if len(walls) == 0 {
		return nil, fmt.Errorf("there is nothing to measure: the overlay has neither policy bindings nor webhooks")
	}
	return walls, nil
}

// setWalls creates or deletes the walls, and waits until the API server refuses, or no longer refuses, a change that only they forbid.
func (b admissionBench) setWalls(ctx context.Context, walls []client.Object, up bool) error {
	for _, wall := range walls {
		var err error
		if up {
			fresh := wall.DeepCopyObject().(client.Object)
			fresh.SetResourceVersion("")
			fresh.SetUID("")
			err = client.IgnoreAlreadyExists(b.Admin().Create(ctx, fresh))
		} else {
			err = client.IgnoreNotFound(b.Admin().Delete(ctx, wall.DeepCopyObject().(client.Object)))
		}
		if err != nil {
			return err
		}
	}
	return waitFor(ctx, "policies that come into force or go", func(ctx context.Context) (bool, error) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"tenancy.warren.dev/probe":"x"}}}`))
		refused := b.As(owner).Patch(ctx, build.Namespace("bench-plain"), patch, client.DryRunAll) != nil
		return refused == up, nil
	})
}

// judge compares the medians of the rounds with and without walls.
func (r request) judge(with, without []time.Duration) result {
	var ratios []float64
	for i := range with {
		ratios = append(ratios, float64(with[i])/float64(without[i]))
	}
	w, wo := medianOf(with), medianOf(without)
	limit := time.Duration(r.ratio*float64(wo)) + r.slack
	return result{
		id: r.id, passed: w <= limit,
		text: fmt.Sprintf("%s p50 without %.2fms with %.2fms ratio %.2f (min %.2f max %.2f) budget %.2fms",
			r.name, ms(wo), ms(w), medianOf(ratios), slices.Min(ratios), slices.Max(ratios), ms(limit)),
	}
}
