package budget

import (
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

func limitOf(namespace, name, uid, version string) *v1alpha1.HierarchicalResourceQuota {
	limit := &v1alpha1.HierarchicalResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid),
		ResourceVersion: version}}
	limit.Spec.Hard = v1alpha1.Budget{"pods": resource.MustParse("5")}
	return limit
}

func TestNoLimitIsMissingWhileANewListIsTakenIn(t *testing.T) {
	k, all := newKnown(), []*v1alpha1.HierarchicalResourceQuota{}
	for i := range 500 {
		all = append(all, limitOf("web-"+strconv.Itoa(i), "team", "1", "1"))
	}
	k.replaceLimits(all)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 200 {
			k.replaceLimits(all)
		}
	}()
	for {
		select {
		case <-done:
			return
		default:
		}
		if !k.hasLimit("web-499") {
			t.Fatal("for a moment the namespace has no limit, so its share would be deleted")
		}
	}
}
