package migrate

import (
	"context"
	"encoding/json"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// A step changes or deletes an object only if its UID and resourceVersion are still those that were read.
func TestWriteHoldsForWhatWasRead(t *testing.T) {
	var deleted client.DeleteOptions
	var patched struct {
		Metadata struct{ UID, ResourceVersion string }
	}
	api := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, options ...client.DeleteOption) error {
			deleted.ApplyOptions(options)
			return nil
		},
		Patch: func(_ context.Context, _ client.WithWatch, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
			body, err := patch.Data(object)
			if err != nil {
				return err
			}
			return json.Unmarshal(body, &patched)
		},
	})
	object := Object{APIVersion: "v1", Kind: "Secret", Namespace: "org", Name: "s"}
	for _, step := range []Step{
		{Verb: Delete, Object: object, uid: "read", version: "7"},
		{Verb: Patch, Object: object, uid: "read", version: "7",
			Body: map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}}},
	} {
		if err := sendStepRequest(t.Context(), api, step); err != nil {
			t.Fatal(err)
		}
	}
	if p := deleted.Preconditions; p == nil || p.UID == nil || *p.UID != "read" || p.ResourceVersion == nil || *p.ResourceVersion != "7" {
		t.Errorf("deletes with the preconditions %v", p)
	}
	if got := patched.Metadata; got.UID != "read" || got.ResourceVersion != "7" {
		t.Errorf("patches %+v", got)
	}
}
