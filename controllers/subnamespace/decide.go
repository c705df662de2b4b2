package subnamespace

import (
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// verdict is what is true of a SubNamespace, and whether its namespace is to be made.
type verdict struct {
	reason  v1alpha1.Reason
	message string
	stalled bool // a human must act
	create  bool
	tooDeep bool // may change with the limits of the tree
	inLine  bool // waits for room in its tree
}

func (v verdict) ready() bool { return v.reason == v1alpha1.ReasonNamespaceActive }

var active = verdict{reason: v1alpha1.ReasonNamespaceActive, message: "the namespace exists and belongs to this SubNamespace"}

// orActive is the verdict on a namespace that was made a moment ago and that the index may not hold yet.
func (v verdict) orActive() verdict {
	if v.create {
		return active
	}
	return v
}

// decide asks whether the name was lost to strangers, then about the parent, then about the name, and where the namespace
// would be made, about what the configuration and the tenant allow; the first obstacle decides. Admission asks the same (webhooks/subnamespace_rules.go).
func decide(s *forest.Snapshot, sub *v1alpha1.SubNamespace) verdict {
	parent, name := sub.Namespace, sub.Name
	if sub.NameLost() && !s.Namespace(name).BoundTo(parent) {
		if o := s.NameObstacle(parent, name); o.Exists() {
			return blocked(o)
		}
		return blocked(forest.NameLost(name))
	}
	if o := s.ParentObstacle(parent); o.Exists() {
		return blocked(o)
	}
	if o := s.NameObstacle(parent, name); o.Exists() {
		return blocked(o)
	}
	if s.Namespace(name) != nil {
		return active
	}
	if o := s.NamingObstacle(parent, name); o.Exists() {
		return blocked(o)
	}
	if o := s.DepthObstacle(parent); o.Exists() {
		v := blocked(o)
		v.tooDeep = true
		return v
	}
	return verdict{reason: v1alpha1.ReasonCreating, message: "the namespace is being made", create: true}
}

// blocked is the verdict on a SubNamespace with an obstacle in its way. What terminates goes by itself; of the rest
// somebody must take care.
func blocked(o forest.Obstacle) verdict {
	waits := o.Reason == v1alpha1.ReasonParentTerminating || o.Reason == v1alpha1.ReasonNamespaceTerminating
	return verdict{reason: o.Reason, message: o.Message, stalled: !waits}
}
