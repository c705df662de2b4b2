// Package budget plans how the namespaces of a tree share what they may use together. The operator keeps one ordinary ResourceQuota in each
// namespace below a limit, and moves room between these ResourceQuotas. The API server alone admits objects, and all state is in the
// ResourceQuotas. A webhook may have a share raised before an object is judged by it; it refuses nothing.
//
// A limit is what all namespaces at and below one namespace may use together. The share of a namespace is spec.hard of its ResourceQuota.
// Its promise is the largest of spec.hard, status.hard and status.used, because the API server admits by status.hard. The room of a limit
// is what it allows, less all promises below it. What is free is what it allows, less all use below it. Room and free of a namespace are
// the smallest over the limits above it.
//
// The sum of the promises below a limit never exceeds it by a write of the operator: a share is raised only by what is room, and a lowered
// share counts as promised until status.hard is lower, too. So the limit is as strict as a ResourceQuota, whatever fails and whoever
// restarts. Only Kubernetes' own count of objects that exist already can exceed it.
package budget

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Amounts are quantities by resource, in the resource's smallest step: 0.001 of a CPU, one byte, one object.
type Amounts map[corev1.ResourceName]int64

// Limit is what all namespaces at and below one namespace may use together.
type Limit struct {
	// Name is how messages call it: "tenant payments".
	Name string
	Hard Amounts
}

// Row is one namespace, with what its ResourceQuota shows. A nil Spec means that there is no ResourceQuota.
type Row struct {
	Namespace string
	// Under are the indexes of the limits at and above the namespace.
	Under []int
	// Spec is spec.hard, Counted is status.hard, Used is status.used.
	Spec, Counted, Used Amounts
	// Passed is what webhook room has let through, and the API server has not counted yet. It is as good as used.
	Passed Amounts
	// Fixed reports that the operator writes nothing in the namespace now: it is halted or protected. Its promise counts.
	Fixed bool
	// Open reports that a write has no answer, so it may be carried out yet: Spec has the larger of both. The share is written in any case,
	// which decides it: as much as there is room for by now.
	Open bool
	// Ending reports that the namespace is terminating: nothing can be created there, so its share never grows.
	Ending bool
}

// Refusal is what a namespace was refused by the API server because its share was too small.
type Refusal struct {
	At time.Time
	// Requested is what one object needs.
	Requested Amounts
	// Share is what the namespace had then.
	Share Amounts
	// Again reports that the namespace was refused within RefusedBefore before, too, or has used up what it got for this refusal.
	Again bool
}

// How long a refusal is acted on, and how long the next one counts as a repetition.
const (
	RefusalHolds  = 5 * time.Second
	RefusedBefore = time.Minute
)

// Share is what spec.hard of a namespace's ResourceQuota should be. A nil Hard means that the ResourceQuota is not needed.
type Share struct {
	Namespace string
	Hard      Amounts
}

// IsCounted reports whether the API server limits the namespace by every key of its share. It does not limit by a ResourceQuota, or by a
// key of one, that it has not counted yet.
func (r *Row) IsCounted() bool {
	for key := range r.Spec {
		if _, ok := r.Counted[key]; !ok {
			return false
		}
	}
	return r.Spec != nil
}

// Lacks reports whether the share has too little room for an object that needs so much.
func (r *Row) Lacks(needed Amounts) bool {
	for key, amount := range needed {
		if most, limited := r.Spec[key]; limited && most-r.Used[key]-r.Passed[key] < amount {
			return true
		}
	}
	return false
}
