package copies

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// builtIn are objects that the API server or a platform writes into every namespace by itself.
var builtIn = map[string][]string{
	"ConfigMap":      {"kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert"},
	"ServiceAccount": {"default"},
	"Service":        {"kubernetes"},
	"Endpoints":      {"kubernetes"},
}

// notCopied are the types of Secrets that mean nothing, or harm, in another namespace.
var notCopied = map[string]bool{
	"kubernetes.io/service-account-token": true,
	"bootstrap.kubernetes.io/token":       true,
	"helm.sh/release.v1":                  true,
}

// ByConfiguration is why an object is never propagated that propagation.neverPropagate names.
const ByConfiguration = "the configuration says so (propagation.neverPropagate)"

// Excluded says why an object is never propagated, or "". secretType is "" where it is not known (yet).
func (r Rules) Excluded(slot Slot, meta metav1.Object, secretType string) string {
	switch labels := meta.GetLabels(); {
	case len(meta.GetFinalizers()) > 0:
		return "it has finalizers (" + strings.Join(meta.GetFinalizers(), ", ") + ")"
	case slot.Kind == (schema.GroupKind{Kind: "Secret"}) && notCopied[secretType]:
		return "Secrets of type " + secretType + " are never propagated"
	case slot.Kind.Group == "" && slices.Contains(builtIn[slot.Kind.Kind], slot.Name):
		return "the platform writes " + slot.Name + " into every namespace"
	case slot.Kind == (schema.GroupKind{Kind: "ConfigMap"}) && labels["owner"] == "helm" && strings.HasPrefix(slot.Name, "sh.helm.release.v1."):
		return "Helm releases are never propagated"
	case r.NeverPropagate != nil && r.NeverPropagate(slot.Kind, slot.Name, secretType, labels):
		return ByConfiguration
	}
	return ""
}

// SourceOf reads a source from its metadata. ok is false for an object that is no source: an object without the label propagate whose kind is
// not in mode All, or a copy, including distributed copies and copies whose label somebody took off.
func (r Rules) SourceOf(slot Slot, meta metav1.Object, mode KindMode) (s *Source, ok bool) {
	value, opted := meta.GetLabels()[v1alpha1.LabelPropagate]
	_, copied := meta.GetLabels()[v1alpha1.LabelInheritedFrom]
	copied = copied || ParseHash(meta.GetAnnotations()[v1alpha1.AnnotationSourceHash]) != Hash{}
	if copied || mode == Remove || !opted && mode != All {
		return nil, false
	}
	maker := Labelled
	if !opted {
		value, maker = v1alpha1.ModeUpdate, Covered
	}
	s = &Source{
		Maker: maker, UID: string(meta.GetUID()), ResourceVersion: meta.GetResourceVersion(), Mode: value,
		Terminating: meta.GetDeletionTimestamp() != nil,
		Excluded:    r.Excluded(slot, meta, ""),
		Created:     meta.GetCreationTimestamp().Unix(),
		Access:      GivesRights(slot) && meta.GetLabels()[v1alpha1.LabelAccess] != "",
	}
	s.judge(meta.GetAnnotations()[v1alpha1.AnnotationSelect])
	return s, true
}

// longestSelector bounds a selector, in bytes. A parsed selector takes seventy times as much memory as its text, and an annotation may have
// 256 kB: a few such annotations of one tenant would use up the operator's memory.
const longestSelector = 4096

// judge checks the mode and parses the selector.
func (s *Source) judge(selector string) {
	switch s.Mode {
	case v1alpha1.ModeCreate, v1alpha1.ModeUpdate, v1alpha1.ModeNone:
	default:
		s.Invalid = "label " + v1alpha1.LabelPropagate + " must be create, update or none, not " + strconv.Quote(s.Mode)
		return
	}
	if selector == "" {
		return
	}
	if len(selector) > longestSelector {
		s.Invalid = fmt.Sprintf("annotation %s has %d bytes: at most %d, write fewer requirements", v1alpha1.AnnotationSelect, len(selector), longestSelector)
		return
	}
	parsed, err := labels.Parse(selector, field.WithPath(field.NewPath(v1alpha1.AnnotationSelect)))
	if err != nil {
		s.Invalid = "annotation " + v1alpha1.AnnotationSelect + " is no label selector: " + err.Error()
		return
	}
	s.Selector = newSelector(parsed)
}
