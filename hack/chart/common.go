package main

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Where commonLabels and commonAnnotations go: entries with key more, and an object without annotations gets a block of them.
const (
	commonLabels      = `{{- with .Values.commonLabels }}{{ toYaml . | nindent 4 }}{{ end }}`
	commonAnnotations = `{{- with .Values.commonAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}`
	annotationsBlock  = `{{- with .Values.commonAnnotations }}{{ dict "annotations" . | toYaml | nindent 2 }}{{ end }}`
)

// addCommon adds the expressions for commonLabels and commonAnnotations to an object, unless config/chart has done so.
func addCommon(u *unstructured.Unstructured) {
	metadata := u.Object["metadata"].(map[string]any)
	addEntry(metadata, "labels", commonLabels)
	switch {
	case metadata["annotations"] != nil:
		addEntry(metadata, "annotations", commonAnnotations)
	case metadata["more"] == nil:
		metadata["more"] = annotationsBlock
	}
}

// addEntry adds an entry with key more to a map of metadata, which it makes if it is missing.
func addEntry(metadata map[string]any, field, expression string) {
	entries, found := metadata[field].(map[string]any)
	if !found {
		entries = map[string]any{}
		metadata[field] = entries
	}
	if entries["more"] == nil {
		entries["more"] = expression
	}
}
