package access

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// bound answers lists with ClusterRoleBindings of these names, or with err.
type bound struct {
	client.Reader
	err   error
	names []string
}

func (b *bound) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if into, ok := list.(*rbacv1.ClusterRoleBindingList); ok {
		for _, name := range b.names {
			binding := rbacv1.ClusterRoleBinding{}
			binding.Name = name
			into.Items = append(into.Items, binding)
		}
	}
	return b.err
}

func TestNamesakes(t *testing.T) {
	const planted = "warren:sole:shop:mallory"
	timing := DefaultTiming()
	begin := func(names ...string) (*namesakes, *bound, *record.FakeRecorder) {
		api, events := &bound{names: names}, record.NewFakeRecorder(10)
		return newNamesakes(api, events, timing), api, events
	}
	look := func(t *testing.T, n *namesakes) time.Duration {
		t.Helper()
		n.restUntil = time.Time{}
		again, err := n.lookForNamesakes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return again
	}
	t.Run("ACC-R30 a binding with the name of a pair and not its labels is found for its tenant, with one Event; a look comes soon, "+
		"or hourly", func(t *testing.T) {
		n, api, events := begin("cluster-admin", planted, "warren:self:mallory")
		if again := look(t, n); again != timing.GroupRetry {
			t.Errorf("the next look comes after %s", again)
		}
		if found, known := n.ofTenant("shop"); !known || len(found) != 1 || found[0].key.Name != planted {
			t.Errorf("found %v, known %t", found, known)
		}
		look(t, n)
		if len(events.Events) != 1 || !strings.Contains(<-events.Events, "Warning AccessConflict") {
			t.Errorf("%d Events more than one", len(events.Events))
		}
		api.names = nil
		if again := look(t, n); again != time.Hour {
			t.Errorf("the next look comes after %s", again)
		}
		if found, _ := n.ofTenant("shop"); len(found) > 0 {
			t.Errorf("still found: %v", found)
		}
	})
	t.Run("ACC-R30 before the first look nothing is known; a look that fails holds up no report", func(t *testing.T) {
		n, api, _ := begin()
		if _, known := n.ofTenant("shop"); known {
			t.Error("known before the first look")
		}
		api.err = errors.New("no answer")
		n.restUntil = time.Time{}
		if _, err := n.lookForNamesakes(t.Context()); err == nil {
			t.Error("the loop doesn't learn that its look failed")
		}
		if _, known := n.ofTenant("shop"); !known {
			t.Error("the tenant waits for ever")
		}
		api.err, api.names = nil, []string{planted}
		look(t, n)
		api.err = errors.New("no answer")
		n.restUntil = time.Time{}
		_, _ = n.lookForNamesakes(t.Context())
		if found, _ := n.ofTenant("shop"); len(found) != 1 {
			t.Errorf("a look that failed counts as one that found nothing: %v", found)
		}
	})
	t.Run("ACC-R30 a tenant is queued when the first look ends, when a binding is found, and when it is gone", func(t *testing.T) {
		n, api, _ := begin()
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer queue.ShutDown()
		if err := n.again.Start(t.Context(), queue); err != nil {
			t.Fatal(err)
		}
		n.ofTenant("asks")
		for _, step := range []struct {
			bound []string
			want  string
		}{{nil, "asks"}, {nil, ""}, {[]string{planted}, "shop"}, {[]string{planted}, ""}, {nil, "shop"}} {
			api.names = step.bound
			look(t, n)
			got := ""
			for queue.Len() > 0 {
				request, _ := queue.Get()
				queue.Done(request)
				got += request.Name
			}
			if got != step.want {
				t.Errorf("with %v, %q is queued and not %q", step.bound, got, step.want)
			}
		}
	})
	t.Run("ACC-R40 a new tenant without sudoers is reported on after a look that began when it was there, and looks take a tenth of the time",
		func(t *testing.T) {
			n, api, _ := begin()
			look(t, n)
			shop, seen := &v1alpha1.LNamespace{}, &facts{own: true}
			shop.Name, seen.input.Mode = "shop", v1alpha1.SudoLegacy
			seen.objects = grants.For(shop, seen.input)
			if seen.findNamesakes(n, shop); !seen.unlooked {
				t.Fatal("the look before the tenant was made counts")
			}
			api.names = []string{planted}
			n.restUntil = time.Now().Add(time.Minute)
			if again, _ := n.lookForNamesakes(t.Context()); again < 50*time.Second {
				t.Errorf("the next look comes after %s, in spite of the pause", again)
			}
			look(t, n)
			if seen.findNamesakes(n, shop); seen.unlooked || len(seen.namesakes) != 1 {
				t.Errorf("found %v, unlooked %t", seen.namesakes, seen.unlooked)
			}
			v1alpha1.SetCondition(&shop.Status.Conditions, 1, v1alpha1.ConditionAccessReady, metav1.ConditionFalse, v1alpha1.ReasonConflict, "")
			if seen.findNamesakes(n, shop); seen.unlooked || len(n.asked)+len(n.covered) > 0 {
				t.Errorf("a tenant that was reported on is remembered: %v %v", n.asked, n.covered)
			}
		})
	t.Run("ACC-R31 the scan before a tenant's first grant finds them, too", func(t *testing.T) {
		n, api, _ := begin(planted)
		g := newGroups(trees{}, api, api, timing)
		g.namesakes = n
		g.waiting["shop"] = true
		if concerned, err := g.scanBindings(t.Context()); err != nil || !slices.Equal(concerned, []string{"shop"}) {
			t.Fatalf("scanned for %v: %v", concerned, err)
		}
		if found, known := n.ofTenant("shop"); !known || len(found) != 1 {
			t.Errorf("found %v, known %t", found, known)
		}
	})
	t.Run("ACC-R31 a tenant with such a binding reports Conflict, which names it, and not Granted", func(t *testing.T) {
		n, _, _ := begin(planted)
		look(t, n)
		seen := &facts{own: true}
		seen.namesakes, _ = n.ofTenant("shop")
		shop := &v1alpha1.LNamespace{}
		shop.Name = "shop"
		found := listFindings(shop, seen, &outcome{})
		if len(found) != 1 || found[0].reason != v1alpha1.ReasonConflict || !strings.Contains(found[0].message, "ClusterRoleBinding "+planted) {
			t.Errorf("findings: %v", found)
		}
	})
}
