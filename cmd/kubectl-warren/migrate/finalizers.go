package migrate

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Objects of the other operator can keep namespaces from being deleted: their finalizers wait for a program that is
// stopped, and its webhooks can't allow their deletion. So at rest, only the record has the finalizers. The webhooks on
// its own kinds are restricted: they refuse only writes that could change what these objects mean.

// restFinalizers is the wave of phase Rest in which finalizers are removed. The other operator, which would restore
// them, has stopped by then.
const restFinalizers = 3

// condition states whether restCondition restricts a webhook of the peer's, and whether it should.
type condition struct {
	// wanted reports that the webhook must be restricted while the peer is at rest.
	wanted bool
	// count is how many match conditions the webhook has; ours is the index of restCondition among them, or -1.
	count, ours int
}

// restCondition keeps webhooks from being asked about the deletion of an object with its namespace, and about updates
// that leave spec as it is.
var restCondition = map[string]any{
	"name": "warren-migration",
	"expression": "!(request.operation == 'DELETE' && ('system:serviceaccounts:kube-system' in request.userInfo.?groups.orValue([]) || " +
		"request.userInfo.username == 'system:kube-controller-manager')) && " +
		"!(request.operation == 'UPDATE' && object.?spec.orValue({}) == oldObject.?spec.orValue({}))",
}

func matchConditionOf(webhook map[string]any, wanted bool) condition {
	c := condition{wanted: wanted, ours: -1}
	list, _, _ := unstructured.NestedSlice(webhook, "matchConditions")
	c.count = len(list)
	c.ours = slices.IndexFunc(list, func(item any) bool {
		fields, _ := item.(map[string]any)
		return fields["name"] == restCondition["name"]
	})
	return c
}

// divideFinalizers divides the finalizers of an object into those of group, which is the other operator's API group,
// and the others.
func divideFinalizers(object *metav1.PartialObjectMetadata, group string) (theirs, others []string) {
	for _, finalizer := range object.Finalizers {
		if finalizer == group || strings.HasPrefix(finalizer, group+"/") {
			theirs = append(theirs, finalizer)
		} else {
			others = append(others, finalizer)
		}
	}
	return theirs, others
}

// peerFinalizers returns the peer's finalizers by object, for the record.
func (p *planner) peerFinalizers() map[string][]string {
	found := map[string][]string{}
	for _, object := range p.Holding {
		if theirs, _ := divideFinalizers(object, p.peer.group); len(theirs) > 0 {
			found[objectFromMetadata(object).String()] = theirs
		}
	}
	return found
}

// planFinalizers adds the steps that remove the peer's finalizers from its objects.
func (p *planner) planFinalizers() {
	for _, object := range p.Holding {
		if theirs, others := divideFinalizers(object, p.peer.group); len(theirs) > 0 {
			p.draft.addPatchStep(Rest, restFinalizers, object, map[string]any{"metadata": map[string]any{"finalizers": others}})
		}
	}
}

// undoFinalizers adds the steps that restore the peer's finalizers.
func (u *undoer) undoFinalizers() {
	for _, object := range u.Holding {
		before := u.Peer.Record.Finalizers[objectFromMetadata(object).String()]
		if theirs, others := divideFinalizers(object, u.peer.group); len(theirs) == 0 && len(before) > 0 &&
			object.DeletionTimestamp == nil {
			u.draft.addPatchStep(Release, 2, object,
				map[string]any{"metadata": map[string]any{"finalizers": append(others, before...)}})
		}
	}
}
