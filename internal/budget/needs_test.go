package budget_test

import (
	"maps"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/budget"
)

func TestNeedsOf(t *testing.T) {
	const pod = `{"spec":{"initContainers":[{"resources":{"requests":{"cpu":"3"}}}],"containers":[{"resources":` +
		`{"requests":{"cpu":"1500m","memory":"1Gi","vendor.example/gpu":"2"},"limits":{"cpu":"2","vendor.example/gpu":"2"}}}]}}`
	const claim = `{"spec":{"storageClassName":"fast","resources":{"requests":{"storage":"30Gi"}}}}`
	const balancer = `{"spec":{"type":"LoadBalancer","ports":[{"port":1},{"port":2}]}}`
	const withoutPorts = `{"spec":{"type":"LoadBalancer","allocateLoadBalancerNodePorts":false,"ports":[{"port":1},{"port":2}]}}`
	for name, tc := range map[string]struct {
		resource, group, object, old string
		want                         budget.Amounts
	}{
		"QUOTA-89 a pod needs what its containers request, at least what an init container does": {resource: "pods", object: pod,
			want: budget.Amounts{"pods": 1, "count/pods": 1, "cpu": 3000, "requests.cpu": 3000, "limits.cpu": 2000, "memory": 1 << 30,
				"requests.memory": 1 << 30, "requests.vendor.example/gpu": 2, "limits.vendor.example/gpu": 2}},
		"QUOTA-89 a claim needs its storage, also of its class": {resource: "persistentvolumeclaims", object: claim,
			want: budget.Amounts{"persistentvolumeclaims": 1, "count/persistentvolumeclaims": 1, "requests.storage": 30 << 30,
				"fast.storageclass.storage.k8s.io/persistentvolumeclaims": 1, "fast.storageclass.storage.k8s.io/requests.storage": 30 << 30}},
		"QUOTA-89 a claim that grows needs the difference": {resource: "persistentvolumeclaims", object: claim,
			old:  `{"spec":{"storageClassName":"fast","resources":{"requests":{"storage":"10Gi"}}}}`,
			want: budget.Amounts{"requests.storage": 20 << 30, "fast.storageclass.storage.k8s.io/requests.storage": 20 << 30}},
		"QUOTA-89 a load balancer needs its node ports": {resource: "services", object: balancer,
			want: budget.Amounts{"services": 1, "count/services": 1, "services.loadbalancers": 1, "services.nodeports": 2}},
		"QUOTA-89 a load balancer without node ports needs none": {resource: "services", object: withoutPorts,
			want: budget.Amounts{"services": 1, "count/services": 1, "services.loadbalancers": 1}},
		"QUOTA-113 negative amounts and amounts of 0 in a forged review need nothing": {resource: "pods",
			object: `{"spec":{"containers":[{"resources":{"requests":{"cpu":"-5","memory":"0"}}}]}}`,
			want:   budget.Amounts{"pods": 1, "count/pods": 1}},
		"QUOTA-89 any other object counts as one": {resource: "jobs", group: "batch", object: `{}`, want: budget.Amounts{"count/jobs.batch": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			is, err := budget.NeedsOf(schema.GroupResource{Group: tc.group, Resource: tc.resource}, []byte(tc.object), []byte(tc.old))
			if err != nil || !maps.Equal(is, tc.want) {
				t.Errorf("needs %v (%v), want %v", is, err, tc.want)
			}
		})
	}
	if _, err := budget.NeedsOf(schema.GroupResource{Resource: "pods"}, []byte("7"), nil); err == nil {
		t.Error("a number is taken for a pod")
	}
}

func TestForgedObjectsAreNotDecoded(t *testing.T) {
	t.Run("QUOTA-114 an object of 3 MiB with a million entries, or with an exponent of ten digits, is not decoded", func(t *testing.T) {
		list := func(entry string) string {
			return `{"spec":{"containers":[` + strings.Repeat(entry+",", 1<<20) + entry + `]}}`
		}
		for name, text := range map[string]string{"objects": list("{}"), "numbers": list("0"), "nulls": list("null"),
			"exponent": `{"spec":{"containers":[{"resources":{"requests":{"cpu":"1e-1000000000"}}}]}}`,
			"number":   `{"spec":{"overhead":{"cpu": 1e1000000000}}}`} {
			within(t, name, func() {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := budget.NeedsOf(schema.GroupResource{Resource: "pods"}, []byte(text), nil)
				runtime.ReadMemStats(&after)
				if took := (after.TotalAlloc - before.TotalAlloc) >> 20; err == nil || took > 50 {
					t.Errorf("%s: %d MB, %v", name, took, err)
				}
			})
		}
	})
}
