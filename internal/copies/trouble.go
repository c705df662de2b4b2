package copies

import (
	"cmp"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Trouble is what keeps a copy from being what it should be.
type Trouble struct {
	Slot Slot
	// Reason is Conflict, Rejected, WaitingForRemoval or LimitExceeded; of a source that can't be judged,
	// InvalidSource.
	Reason v1alpha1.Reason
	// From is the namespace of the source.
	From string
	// Text describes what stands in the way.
	Text string
}

// Compare orders troubles by namespace, kind and name.
func (t Trouble) Compare(other Trouble) int {
	a, b := t.Slot, other.Slot
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind.Kind, b.Kind.Kind), cmp.Compare(a.Kind.Group, b.Kind.Group),
		cmp.Compare(a.Name, b.Name))
}
