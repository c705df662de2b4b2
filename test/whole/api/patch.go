package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

func refuse400(why string) *Refusal { return refuse(apierrors.NewBadRequest(why)) }

// patched returns what a PATCH makes of an object.
func patched(old *Record, r Request) (*unstructured.Unstructured, *Refusal) {
	switch types.PatchType(r.ContentType) {
	case types.MergePatchType:
		var patch map[string]any
		decodeInto(r.Body, &patch)
		u := decodeObject(old.encode(false))
		u.Object = mergePatch(u.Object, patch)
		return u, nil
	case types.JSONPatchType:
		patch, err := jsonpatch.DecodePatch(r.Body)
		if err != nil {
			return nil, refuse400(err.Error())
		}
		body, err := patch.Apply(old.encode(false))
		switch {
		case errors.Is(err, jsonpatch.ErrTestFailed):
			return nil, refuse(apierrors.NewGenericServerResponse(422, "patch", old.Kind.GroupResource(), old.GetName(), err.Error(), 0, false))
		case err != nil:
			return nil, refuse(apierrors.NewGenericServerResponse(422, "patch", old.Kind.GroupResource(), old.GetName(), err.Error(), 0, false))
		}
		return decodeObject(body), nil
	case types.StrategicMergePatchType:
		if old.Kind.Kind != "Event" {
			panic("the model knows strategic merge patches of Events alone, not of " + old.Kind.Kind)
		}
		body, err := strategicpatch.StrategicMergePatch(old.encode(false), r.Body, corev1.Event{})
		if err != nil {
			return nil, refuse400(err.Error())
		}
		return decodeObject(body), nil
	}
	panic("the model does not know patches of type " + r.ContentType)
}

// mergePatch is RFC 7396.
func mergePatch(object, patch map[string]any) map[string]any {
	merged := maps.Clone(object)
	if merged == nil {
		merged = map[string]any{}
	}
	for key, value := range patch {
		switch v := value.(type) {
		case nil:
			delete(merged, key)
		case map[string]any:
			inner, _ := merged[key].(map[string]any)
			merged[key] = mergePatch(inner, v)
		default:
			merged[key] = canonical(v)
		}
	}
	return merged
}

// canonical returns numbers as unstructured objects have them.
func canonical(value any) any {
	body, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(fmt.Appendf(nil, `{"kind":"Value","apiVersion":"v1","value":%s}`, body)); err != nil {
		panic(err)
	}
	return u.Object["value"]
}
