package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/copies"
)

// manyTenants returns a site with n Tenants, each with an owner, two namespaces, a ResourcePool, and the owner's RoleBinding in each,
// and a function that plans.
func manyTenants(n int) func() Plan {
	found, s := Capsule{}, newSite(copies.OptIn, nil)
	s.LNamespaces, s.Caller = map[string]*v1alpha1.LNamespace{}, "root@example.com"
	s.Quotas = treeQuotas{served: true, old: map[string][]*corev1.ResourceQuota{}}
	s.Kinds[0] = Kind{GroupVersionKind: roleBindings, Resource: "rolebindings", Mode: copies.OptIn}
	deploys := bindingOfCapsule{ClusterRoleName: "deploy"}
	deploys.Subjects = append(deploys.Subjects, bindingSubject([3]string{"User", "", "alice"}))
	for i := range n {
		tenant := fmt.Sprintf("t%05d", i)
		found.Tenants = append(found.Tenants, tenantObject(tenant, map[string]any{"owners": []any{owner("User", "alice", "deploy")}}))
		found.Others = append(found.Others, pool("ResourcePool", tenant, hardOf("pods", "5"), tenant+"-dev", tenant+"-prod"))
		for _, name := range []string{tenant + "-dev", tenant + "-prod"} {
			s.Quotas.old[name] = []*corev1.ResourceQuota{capsuleQuotaIn(name, capsulePool, tenant)}
			s.Namespaces[name] = ownedBy(namespace(name), tenant)
			binding := ownedBy(object(roleBindings, name, "deploy-alice", capsuleBinding, "x"), tenant)
			s.Kinds[0].Objects = append(s.Kinds[0].Objects, binding)
			found.Replicas = append(found.Replicas, bindingObject(binding, deploys))
		}
		found.Made = append(found.Made, bindingObject(object(roleBindings, tenant, "deploy-alice"), deploys))
	}
	return func() Plan {
		return NewPlan(EstateOfCapsule(found, s.Cluster, ourRules{configfile.Default(), "warren-system"}), s.Cluster)
	}
}

// manyTrees is the like of HNC: n roots of one child each, with a Secret in each namespace.
func manyTrees(n int) func() Plan {
	found, namespaces, secretsIn := HNC{}, []*metav1.PartialObjectMetadata{}, []*metav1.PartialObjectMetadata{}
	found.Configurations = []unstructured.Unstructured{{Object: map[string]any{"spec": map[string]any{
		"resources": []any{map[string]any{"resource": "secrets", "mode": hncPropagate}}}}}}
	for i := range n {
		root := fmt.Sprintf("t%05d", i)
		namespaces = append(namespaces, namespace(root), namespace(root+"-web", "@"+hncSubnamespaceOf, root))
		secretsIn = append(secretsIn, object(secrets, root, "s"), object(secrets, root+"-web", "s", hncInheritedFrom, root))
	}
	s, every := newSite(copies.OptIn, namespaces, secretsIn...), func(string) bool { return true }
	return func() Plan {
		return NewPlan(EstateOfHNC(found, s.Namespaces, s.Kinds, AllowedKeys{every, every}), s.Cluster)
	}
}

// A plan of four times as many objects needs about four times as many allocations, and sixteen times if it compares
// each with each.
func TestPlanScales(t *testing.T) {
	for name, many := range map[string]func(int) func() Plan{
		"MIG-C7 a plan for four times the Tenants of Capsule costs at most seven times the allocations": manyTenants,
		"MIG-C7 a plan for four times the trees of HNC costs at most seven times the allocations":       manyTrees,
	} {
		t.Run(name, func(t *testing.T) {
			few, more := many(100), many(400)
			if steps := len(few().Steps); steps < 300 {
				t.Fatalf("the plan has only %d steps", steps)
			}
			plan := func(of func() Plan) float64 { return testing.AllocsPerRun(1, func() { of() }) }
			if once, fourfold := plan(few), plan(more); fourfold > 7*once {
				t.Errorf("a fourfold plan needs %.0f allocations, and the single one %.0f", fourfold, once)
			}
		})
	}
}

func BenchmarkPlan(b *testing.B) {
	for name, many := range map[string]func(int) func() Plan{"Capsule": manyTenants, "HNC": manyTrees} {
		for _, n := range []int{500, 2000} {
			b.Run(fmt.Sprintf("%s-%d", name, n), func(b *testing.B) {
				plan := many(n)
				for b.Loop() {
					plan()
				}
			})
		}
	}
}

// slowRun returns an executor of one step, whose read takes half a minute. Of the requests, the API server refuses the
// first ones.
func slowRun(refusals int, read func() error) (x *executor, requests *int) {
	requests = new(int)
	api := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			if *requests++; *requests <= refusals {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "x", errors.New("not yet"))
			}
			return nil
		},
	})
	return &executor{
		reader: &reader{api: api}, out: io.Discard,
		read: func(context.Context) (*Estate, Cluster, error) {
			time.Sleep(30 * time.Second) // in a bubble of synctest, where this takes no time
			return newEmptyEstate(), Cluster{}, read()
		},
		plan: func(*Estate, Cluster) (Plan, error) {
			if *requests > refusals {
				return Plan{}, nil
			}
			step := Step{Phase: Tenants, Verb: Create, Object: warrenObject("LNamespace", "", "x"), Body: map[string]any{}}
			return Plan{Steps: []Step{step}}, nil
		},
	}, requests
}

func TestPatienceOfARun(t *testing.T) {
	well := func() error { return nil }
	t.Run("MIG-M4 the time for repeating a request that is refused does not include the time for reading", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			x, requests := slowRun(3, well)
			if _, err := x.runUntilDone(t.Context()); err != nil || *requests != 4 {
				t.Errorf("after %d requests: %v", *requests, err)
			}
		})
	})
	t.Run("MIG-M4 a run whose requests are all refused ends after at most ten", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			x, requests := slowRun(1000, well)
			if _, err := x.runUntilDone(t.Context()); !apierrors.IsForbidden(err) || *requests > 10 {
				t.Errorf("after %d requests: %v", *requests, err)
			}
		})
	})
	t.Run("MIG-M4 a failed read is repeated", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			answers := []error{&url.Error{Op: "Get", Err: errors.New("connection refused")}}
			x, _ := slowRun(0, func() error {
				if len(answers) == 0 {
					return nil
				}
				err := answers[0]
				answers = slices.Delete(answers, 0, 1)
				return err
			})
			if _, err := x.runUntilDone(t.Context()); err != nil {
				t.Error(err)
			}
		})
	})
}
