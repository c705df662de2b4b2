package grants

// WriteVerb is the kind of request that a Write sends.
type WriteVerb string

// The verbs of a Write. WriteConflict sends nothing: somebody else's object has the name, so the step can't be done.
const (
	WriteNothing  WriteVerb = ""
	WriteCreate   WriteVerb = "create"
	WriteUpdate   WriteVerb = "update"
	WriteDelete   WriteVerb = "delete"
	WriteConflict WriteVerb = "conflict"
)

// Write is the next request of one step to the API server.
type Write struct {
	Verb WriteVerb
	// Object is what is written; for a deletion, the existing object.
	Object Object
	// Unchanged reports that a deletion is meant for this version of the object only.
	Unchanged bool
	// Unfinished reports that the step needs another request after this one.
	Unfinished bool
}

// NextWrite returns the next request of a step of the tenant. actual has the existing objects, as last read.
func NextWrite(tenant string, step Step, actual Actual) Write {
	existing := actual[KeyOf(step.Desired)]
	switch {
	case step.Verb == VerbEnsure:
		return nextToEnsure(existing, step.Desired)
	case existing == nil || !Removable(existing, step.Desired):
		return Write{} // deleted already, or someone else's by now
	case step.Verb == VerbNarrow, step.Verb == VerbRemove && mayStay(existing, step, actual):
		return nextToNarrow(existing, step.Desired)
	case step.Verb == VerbRemove:
		return nextToRemove(existing)
	default:
		return nextToRelease(tenant, existing, step.Last)
	}
}

func nextToEnsure(existing, desired Object) Write {
	if existing == nil {
		return Write{Verb: WriteCreate, Object: desired.DeepCopyObject().(Object)}
	}
	switch Judge(existing, desired) {
	case Conflict:
		return Write{Verb: WriteConflict}
	case Equal:
		return Write{}
	}
	if MustRecreate(existing, desired) {
		removal := nextToRemove(existing)
		removal.Unfinished = true // the object is then created anew
		return removal
	}
	return Write{Verb: WriteUpdate, Object: Restore(existing, desired)}
}

// mayStay reports whether a binding that was to be removed because of its role no longer refers to a role that the
// operator doesn't manage. Since the plan, the operator may have made both anew for another tenant that shares the
// pair.
func mayStay(binding Object, step Step, actual Actual) bool {
	return step.Role != nil && actual.Judge(step.Role) != Conflict && !MustRecreate(binding, step.Desired)
}

func nextToNarrow(existing, desired Object) Write {
	if narrowed, ok := Narrow(existing, desired); ok {
		return Write{Verb: WriteUpdate, Object: narrowed}
	}
	return Write{}
}

// nextToRemove returns the deletion of existing. If a foreign finalizer keeps a binding that is being deleted already,
// the binding still grants, so an update takes all subjects from it.
func nextToRemove(existing Object) Write {
	if existing.GetDeletionTimestamp() != nil {
		return nextToNarrow(existing, Without(existing))
	}
	return Write{Verb: WriteDelete, Object: existing}
}

// nextToRelease releases a shared object. Only a tenant that is being deleted (last) deletes the object, and only if no
// other tenant has come to own it meanwhile.
func nextToRelease(tenant string, existing Object, last bool) Write {
	if last && LastOwner(existing, tenant) {
		return Write{Verb: WriteDelete, Object: existing, Unchanged: true}
	}
	if released, ok := Release(existing, tenant); ok {
		return Write{Verb: WriteUpdate, Object: released}
	}
	return Write{}
}
