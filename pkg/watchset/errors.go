package watchset

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Errors that callers compare with errors.Is.
var (
	// ErrNotSynced: no informer has listed the objects yet. An object that isn't found may exist.
	ErrNotSynced = errors.New("not synced")
	// ErrReleased: the lease was released.
	ErrReleased = errors.New("the lease is released")
	// ErrLimit: MaxInformers or MaxNamespaces leaves no room.
	ErrLimit = errors.New("there is no room for another informer")
	// ErrInvalid: a malformed Request or read; the message names the field.
	ErrInvalid = errors.New("invalid request")
	// ErrStarted: Start was called before.
	ErrStarted = errors.New("the watch set was started before")
	// ErrStopped: Start has ended.
	ErrStopped = errors.New("the watch set has stopped")
)

// ForbiddenError reports that list or watch is not allowed. apierrors.IsForbidden is true for it.
type ForbiddenError struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string // empty for all
	Missing         []string
	Cause           error // the server's reason; nil if the server gave none
}

// Error implements error.
func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("%s are forbidden: missing %s%s", describeTarget(e.Resource, e.Namespace, e.Name), strings.Join(e.Missing, ", "),
		causeSuffix(e.Cause))
}

// Unwrap returns the cause.
func (e *ForbiddenError) Unwrap() error { return e.Cause }

// Status implements apierrors.APIStatus.
func (e *ForbiddenError) Status() metav1.Status {
	return metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: e.Error(),
		Details: &metav1.StatusDetails{Group: e.Resource.Group, Kind: e.Resource.Resource, Name: e.Name},
	}
}

// NotServedError reports that the server doesn't serve the resource or kind that the Request names, or not in this
// scope. meta.IsNoMatchError is true for it.
type NotServedError struct {
	Resource schema.GroupVersionResource
	Kind     schema.GroupVersionKind
	reason   string
}

// Error implements error.
func (e *NotServedError) Error() string {
	if !e.Kind.Empty() {
		return e.describeKindOrResource()
	}
	text := fmt.Sprintf("%s are not served in version %s", e.Resource.GroupResource(), e.Resource.GroupVersion())
	if e.reason != "" {
		text = fmt.Sprintf("%s are not served in version %s: %s", e.Resource.GroupResource(), e.Resource.GroupVersion(), e.reason)
	}
	return text
}

func (e *NotServedError) describeKindOrResource() string {
	text := "kind " + e.Kind.GroupKind().String()
	if e.Kind.Version != "" {
		text += " of version " + e.Kind.Version
	}
	if e.reason != "" {
		return text + " is not served: " + e.reason
	}
	return text + " is not served"
}

// Unwrap returns a *meta.NoKindMatchError if the Request names a kind, else a *meta.NoResourceMatchError.
func (e *NotServedError) Unwrap() error {
	if !e.Kind.Empty() {
		return &meta.NoKindMatchError{GroupKind: e.Kind.GroupKind(), SearchedVersions: []string{e.Kind.Version}}
	}
	return &meta.NoResourceMatchError{PartialResource: e.Resource}
}

// DegradedError reports that an informer had no working watch for Options.DegradedAfter, or that its rights are in
// doubt. Objects that a read returns with it are as the informer saw them last, and may be outdated.
type DegradedError struct {
	Resource  schema.GroupVersionResource
	Namespace string
	LastSync  time.Time // when the watch worked last; zero if no watch worked yet
	Cause     error
}

// Error implements error.
func (e *DegradedError) Error() string {
	since := "there was no working watch yet"
	if !e.LastSync.IsZero() {
		since = "no working watch since " + e.LastSync.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s: %s%s", describeTarget(e.Resource, e.Namespace, ""), since, causeSuffix(e.Cause))
}

// Unwrap returns the cause.
func (e *DegradedError) Unwrap() error { return e.Cause }

// PartialError states which namespaces could not be seen, and why each, while others could. It unwraps to none of its
// errors, because each of them concerns one namespace only.
type PartialError struct {
	Namespaces map[string]error
}

// Error implements error.
func (e *PartialError) Error() string {
	names := slices.Sorted(maps.Keys(e.Namespaces))
	if len(names) == 0 {
		return "some namespaces could not be seen"
	}
	text := fmt.Sprintf("namespace %q could not be seen: %v", names[0], e.Namespaces[names[0]])
	if more := len(names) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

func describeTarget(resource schema.GroupVersionResource, namespace, name string) string {
	text := resource.GroupResource().String()
	if name != "" {
		text += fmt.Sprintf(" %q", name)
	}
	switch {
	case namespace != "":
		text += fmt.Sprintf(" in namespace %q", namespace)
	case name == "":
		text += " cluster-wide"
	}
	return text
}

func causeSuffix(cause error) string {
	if cause == nil || cause.Error() == "" {
		return ""
	}
	return ": " + cause.Error()
}
