package grants

// WriteVerb is what a Write does to an object.
type WriteVerb string

// The verbs of a Write. WriteConflict is none: somebody else's object has the name, so the step can't be done.
const (
	WriteNothing  WriteVerb = ""
	WriteCreate   WriteVerb = "create"
	WriteUpdate   WriteVerb = "update"
	WriteDelete   WriteVerb = "delete"
	WriteConflict WriteVerb = "conflict"
)

// Write is what one step sends to the API server next.
type Write struct {
	Verb WriteVerb
	// Object is what is written; where it is deleted, what exists.
	Object Object
	// Unchanged says that a deletion is meant for this version of the object only, and not for what it becomes meanwhile.
	Unchanged bool
	// Unfinished says that the step goes on after this write.
	Unfinished bool
}

// NextWrite is the one write that a step of the tenant takes now; existing is what stands under the name, or nil.
func NextWrite(tenant string, step Step, existing Object) Write {
	switch {
	case step.Deed == DeedEnsure:
		return nextToEnsure(existing, step.Desired)
	case existing == nil || !Removable(existing, step.Desired):
		return Write{} // gone already, or someone else's by now
	case step.Deed == DeedRemove:
		return nextToRemove(existing)
	case step.Deed == DeedNarrow:
		if narrowed, ok := Narrow(existing, step.Desired); ok {
			return Write{Verb: WriteUpdate, Object: narrowed}
		}
		return Write{}
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
		removal.Unfinished = true // made anew at once
		return removal
	}
	return Write{Verb: WriteUpdate, Object: Restore(existing, desired)}
}

// nextToRemove deletes an object of this UID. One that a foreign finalizer holds stays.
func nextToRemove(existing Object) Write {
	if existing.GetDeletionTimestamp() != nil {
		return Write{}
	}
	return Write{Verb: WriteDelete, Object: existing}
}

// nextToRelease gives up a shared object. Only a tenant that leaves for good deletes it, and only if no other came meanwhile.
func nextToRelease(tenant string, existing Object, last bool) Write {
	if last && LastOwner(existing, tenant) {
		return Write{Verb: WriteDelete, Object: existing, Unchanged: true}
	}
	if released, ok := Release(existing, tenant); ok {
		return Write{Verb: WriteUpdate, Object: released}
	}
	return Write{}
}
