package api

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selection is which objects a list or a watch asks for.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func selectionOf(to route, r Request) selection {
	s := selection{namespace: to.namespace, labels: labels.Everything(), fields: fields.Everything()}
	var err error
	if text := r.Query.Get("labelSelector"); text != "" {
		if s.labels, err = labels.Parse(text); err != nil {
			panic(fmt.Sprintf("the model does not answer a wrong label selector: %v", err))
		}
	}
	if text := r.Query.Get("fieldSelector"); text != "" {
		if s.fields, err = fields.ParseSelector(text); err != nil {
			panic(fmt.Sprintf("the model does not answer a wrong field selector: %v", err))
		}
	}
	if to.name != "" {
		s.fields = fields.AndSelectors(s.fields, fields.OneTermEqualSelector("metadata.name", to.name))
	}
	return s
}

func (s selection) has(r *Record) bool {
	if r == nil || s.namespace != "" && r.GetNamespace() != s.namespace || !s.labels.Matches(labels.Set(r.GetLabels())) {
		return false
	}
	if s.fields.Empty() {
		return true
	}
	set := fields.Set{}
	for _, need := range s.fields.Requirements() {
		value, _, err := unstructured.NestedFieldNoCopy(r.Object, strings.Split(need.Field, ".")...)
		if err == nil && value != nil {
			set[need.Field] = fmt.Sprint(value)
		}
	}
	return s.fields.Matches(set)
}

// list answers with all objects at this moment. A list in parts is answered from the moment of its first part.
func (s *Server) list(to route, r Request) Response {
	var found []*Record
	if token := r.Query.Get("continue"); token != "" {
		rest, kept := s.continued[token]
		if !kept {
			return expired().response()
		}
		delete(s.continued, token)
		found = rest
	} else {
		wanted := selectionOf(to, r)
		for _, each := range to.kind.All() {
			if wanted.has(each) {
				found = append(found, each)
			}
		}
	}
	metadata := map[string]any{"resourceVersion": strconv.FormatInt(s.revision, 10)}
	if limit, _ := strconv.Atoi(r.Query.Get("limit")); limit > 0 && len(found) > limit {
		token := fmt.Sprintf("rest-%d-%d", s.revision, len(s.continued))
		metadata["continue"], metadata["remainingItemCount"] = token, len(found)-limit
		s.continued[token], found = found[limit:], found[:limit]
	}
	metadataOnly := strings.Contains(r.Accept, "as=PartialObjectMetadata")
	kind, version := to.kind.Kind+"List", to.kind.GroupVersion().String()
	if metadataOnly {
		kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	body := bytes.NewBuffer(nil)
	fmt.Fprintf(body, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`, kind, version, mustEncode(metadata))
	for i, each := range found {
		if i > 0 {
			body.WriteByte(',')
		}
		body.Write(each.encode(metadataOnly))
	}
	body.WriteString("]}")
	return Response{Code: http.StatusOK, Body: body.Bytes()}
}
