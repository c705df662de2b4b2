package copyengine_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
)

// describe describes in a few words what an Output asks for.
func describe(output copyengine.Output) string {
	switch one := output.(type) {
	case copyengine.Queue:
		keys := make([]string, len(one.Keys))
		for i, key := range one.Keys {
			keys[i] = describeKey(key)
		}
		slices.Sort(keys)
		if one.After > 0 {
			return "later " + strings.Join(keys, ", ")
		}
		return "queue " + strings.Join(keys, ", ")
	case copyengine.ReadSource:
		return "read " + one.Source.String()
	case copyengine.FindLoss:
		return "find " + one.Source.String()
	case copyengine.CheckRemoval:
		return "check " + one.Slot.String()
	case copyengine.WriteCopy:
		probe := map[bool]string{true: "probe, "}[one.Probe]
		return fmt.Sprintf("%s%s %s", probe, verbs[one.Action.Verb], one.Slot)
	case copyengine.Report:
		return "report " + strings.Join(one.Namespaces, ", ")
	case copies.Event:
		return fmt.Sprintf("event %s on %s", one.Reason, one.Slot)
	case copies.Log:
		return "log " + one.Message
	case copyengine.Follow:
		return "follow " + strings.Join(slices.Sorted(maps.Keys(one.Namespaces)), ", ")
	case copyengine.CopyRepaired:
		return fmt.Sprintf("repaired %s, found by %s", one.Kind.Kind, one.Found)
	case copyengine.FanoutEnded:
		return fmt.Sprintf("fan-out of %s ended: %s", one.Kind.Kind, verbs[one.Verb])
	}
	return strings.ReplaceAll(fmt.Sprintf("%T", output), "copyengine.", "")
}

// limit is the most steps that any work may take.
const limit = 20_000

var verbs = map[copies.Verb]string{
	copies.Create: "create", copies.Update: "update", copies.Delete: "delete", copies.Look: "look", copies.Inspect: "inspect",
	copies.Withdraw: "withdraw",
}

func describeInput(input copyengine.Input) string {
	switch one := input.(type) {
	case copyengine.Started:
		return "start " + describeKey(one.Key)
	case copyengine.ObjectSeen:
		return fmt.Sprintf("seen %s %s/%s at %s", one.Kind.Kind, one.Object.Namespace, one.Object.Name, one.Object.ResourceVersion)
	case copyengine.ObjectGone:
		return fmt.Sprintf("gone %s %s/%s at %s", one.Kind.Kind, one.Object.Namespace, one.Object.Name, one.Object.ResourceVersion)
	case copyengine.ForestChanged:
		return "forest changed: " + strings.Join(one.Namespaces, ", ")
	case copyengine.BodyRead:
		return "body of " + one.Source.String()
	case copyengine.SourceRead:
		return fmt.Sprintf("read of %s: %v", one.Source, one.Err)
	case copyengine.LossFound:
		return fmt.Sprintf("loss of %s: %v", one.Source, one.Loss)
	case copyengine.RemovalChecked:
		return fmt.Sprintf("check of %s: %v", one.Slot, one.Err)
	case copyengine.CopyWritten:
		return fmt.Sprintf("written %s: %v", describe(one.WriteCopy), one.Err)
	}
	return fmt.Sprintf("%T", input)
}

func describeKey(key copyengine.Key) string {
	switch key.Task {
	case copyengine.LookAtNamespace:
		return "namespace " + key.Slot.Namespace
	case copyengine.LookAtSource:
		return "source " + key.Slot.String()
	case copyengine.SpreadSource:
		return "spread of " + key.Slot.String()
	case copyengine.LookAtLimits:
		return "limits of " + key.Slot.Namespace
	}
	return key.Slot.String()
}

func requestedSlot(request copyengine.Request) copies.Slot {
	switch one := request.(type) {
	case copyengine.ReadSource:
		return one.Source
	case copyengine.FindLoss:
		return one.Source
	case copyengine.CheckRemoval:
		return one.Slot
	}
	return request.(copyengine.WriteCopy).Slot
}

// The errors of the API server.

func notFound(slot copies.Slot) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: strings.ToLower(slot.Kind.Kind) + "s"}, slot.Name)
}

func conflicting(slot copies.Slot) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: strings.ToLower(slot.Kind.Kind) + "s"}, slot.Name, nil)
}

func forbidden(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden,
		Reason: metav1.StatusReasonForbidden, Message: message}}
}

func unavailable() error { return apierrors.NewInternalError(fmt.Errorf("no answer")) }

func namespaceEnds(slot copies.Slot) error {
	err := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, slot.Name,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", slot.Namespace))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}
