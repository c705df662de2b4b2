package subnamespace

import (
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// verdict is condition Ready of a SubNamespace before it is written, and whether its namespace is to be created.
type verdict struct {
	reason  v1alpha1.Reason
	message string
	stalled bool // a human must act
	create  bool
	tooDeep bool // waits for the tree's limit of depth to change
	inLine  bool // waits in line for room in its tree
}

func (v verdict) isReady() bool { return v.reason == v1alpha1.ReasonNamespaceActive }

var active = verdict{reason: v1alpha1.ReasonNamespaceActive, message: "the namespace exists and belongs to this SubNamespace"}

// orActive returns the verdict on a namespace that the operator has just created: active if v, judged by a view that
// lacks the namespace, would create it again; otherwise v.
func (v verdict) orActive() verdict {
	if v.create {
		return active
	}
	return v
}

// decideVerdict judges, in this order: whether the name was lost to a namespace outside of the tree, the parent, and
// the name. If the namespace is still to be created, the naming policies and the depth come next. The first obstacle
// decides. Admission judges by the same rules (webhooks/subnamespace_rules.go).
func decideVerdict(s *forest.Snapshot, sub *v1alpha1.SubNamespace) verdict {
	parent, name := sub.Namespace, sub.Name
	if sub.NameLost() && !s.Namespace(name).BoundTo(parent) {
		if o := forest.NameObstacle(s, parent, name); o.Exists() {
			return blockedVerdict(o)
		}
		return blockedVerdict(forest.NameLost(name))
	}
	if o := forest.ParentObstacle(s, parent); o.Exists() {
		return blockedVerdict(o)
	}
	if o := forest.NameObstacle(s, parent, name); o.Exists() {
		return blockedVerdict(o)
	}
	if s.Namespace(name) != nil {
		return active
	}
	if o := forest.NamingObstacle(s, parent, name); o.Exists() {
		return blockedVerdict(o)
	}
	if o := forest.DepthObstacle(s, parent); o.Exists() {
		v := blockedVerdict(o)
		v.tooDeep = true
		return v
	}
	return verdict{reason: v1alpha1.ReasonCreating, message: "the namespace is being made", create: true}
}

// blockedVerdict returns the verdict on a SubNamespace with an obstacle in its way. An obstacle that is a terminating
// namespace passes by itself; any other one needs a person.
func blockedVerdict(o forest.Obstacle) verdict {
	waits := o.Reason == v1alpha1.ReasonParentTerminating || o.Reason == v1alpha1.ReasonNamespaceTerminating
	return verdict{reason: o.Reason, message: o.Message, stalled: !waits}
}
