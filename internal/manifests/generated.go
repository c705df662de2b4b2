package manifests

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/configfile"
)

// This file holds what feature gate PropagateGenerated adds to the manifests. As with the kinds, the configuration decides. So manifests
// that are printed again for the same configuration keep these additions.

// labelled is the expression of the variable of that name in policy operator-cage-objects while the gate is open. The operator may then
// give the label propagate to an object that has a controller, or remove the label. It may change nothing else of the object. RBAC objects
// are excluded: a label on one would hand out rights.
const labelled = `>-
      request.operation == 'UPDATE' && variables.sub == '' && request.resource.group != 'rbac.authorization.k8s.io' && !variables.own
      && !['tenancy.warren.dev/inherited-from', 'tenancy.warren.dev/access', 'tenancy.warren.dev/distributed-by'].exists(k,
      k in object.metadata.?labels.orValue({}) || k in oldObject.metadata.?labels.orValue({}))
      && (oldObject.metadata.?labels[?'tenancy.warren.dev/propagate'].hasValue()
      || oldObject.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false)))
      && object.metadata.?labels[?'tenancy.warren.dev/propagate'].orValue('create') in ['create', 'update']
      && object.metadata.?labels.orValue({}).all(k, k == 'tenancy.warren.dev/propagate'
      || oldObject.metadata.?labels[?k] == object.metadata.?labels[?k])
      && oldObject.metadata.?labels.orValue({}).all(k, k == 'tenancy.warren.dev/propagate' || k in object.metadata.?labels.orValue({}))
      && object.metadata.?annotations == oldObject.metadata.?annotations && object.metadata.?finalizers == oldObject.metadata.?finalizers
      && object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences && size(dyn(object)) == size(dyn(oldObject))
      && dyn(object).all(f, f == 'metadata' || dyn(object)[?f] == dyn(oldObject)[?f])`

// closed is the definition of variable labelled while the gate is closed.
const closed = "- name: labelled\n    expression: 'false'"

// openForGenerated returns cage, the text of policy operator-cage-objects, as it is while the gate is open.
func openForGenerated(cage []byte) []byte {
	return []byte(strings.Replace(string(cage), closed, "- name: labelled\n    expression: "+labelled, 1))
}

// rightsOnGenerated returns the rules of the operator's role by which it watches generators and labels the objects that they control.
func rightsOnGenerated(c *config.OperatorConfiguration) string {
	text := &strings.Builder{}
	grant := func(kind schema.GroupKind, verbs string) {
		fmt.Fprintf(text, "\n- apiGroups: [%s]\n  resources: [%s]\n  verbs: [%s]", cmp.Or(kind.Group, `""`), pluralOf(kind), verbs)
	}
	for _, kind := range configfile.LabelledKinds(c) {
		grant(kind.GroupKind(), "patch")
	}
	for _, g := range c.Propagation.Generators {
		grant(schema.GroupKind{Group: g.Group, Kind: g.Kind}, "list, watch")
	}
	return text.String()
}
