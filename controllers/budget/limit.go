package budget

import (
	"encoding/json"
	"hash/fnv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
)

// limit is what is kept of a HierarchicalResourceQuota. Whoever may write one in any namespace decides how long its annotations are, so
// nothing is kept but this: at most MaxKeys keys, and a digest of the status.
type limit struct {
	client.ObjectKey
	uid        types.UID
	version    string
	generation int64
	hard       budget.Amounts
	problems   []string // what of spec.hard no share can hold, so that it isn't in hard
	isEnding   bool
	reported   reported
}

// reported is what the status of a HierarchicalResourceQuota says.
type reported struct {
	digest     uint64
	generation int64
	ready      []metav1.Condition // condition Ready without its message, or nothing
}

func keepLimit(one *v1alpha1.HierarchicalResourceQuota) limit {
	kept := limit{ObjectKey: client.ObjectKeyFromObject(one), uid: one.UID, version: one.ResourceVersion, generation: one.Generation,
		isEnding: one.DeletionTimestamp != nil, reported: reported{digest: digestOf(one.Status), generation: one.Status.ObservedGeneration}}
	if len(one.Spec.Hard) <= budget.MaxKeys {
		kept.hard, kept.problems = budget.Limited(one.Spec.Hard)
	}
	if ready := v1alpha1.FindCondition(one.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		kept.reported.ready = []metav1.Condition{{Type: ready.Type, Status: ready.Status, Reason: ready.Reason,
			LastTransitionTime: ready.LastTransitionTime}}
	}
	return kept
}

// trimLimit removes from a HierarchicalResourceQuota what keepLimit doesn't read, as soon as it arrives: a list holds all until it is
// complete.
func trimLimit(one *v1alpha1.HierarchicalResourceQuota) *v1alpha1.HierarchicalResourceQuota {
	one.Annotations, one.Labels, one.ManagedFields, one.OwnerReferences = nil, nil, nil, nil
	return one
}

// digestOf returns a digest of a status, by which a status that needs no write is known.
func digestOf(status v1alpha1.HierarchicalResourceQuotaStatus) uint64 {
	text, _ := json.Marshal(status) // of plain fields: it can't fail
	sum := fnv.New64a()
	_, _ = sum.Write(text)
	return sum.Sum64()
}
