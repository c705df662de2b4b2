package doctor

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWhyAnAPIServiceIsUnavailable(t *testing.T) {
	service := func(condition map[string]any) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{condition}}}}
	}
	for name, c := range map[string]struct {
		service unstructured.Unstructured
		want    string
	}{
		"it answers":      {service(map[string]any{"type": "Available", "status": "True", "reason": "Passed"}), ""},
		"a reason":        {service(map[string]any{"type": "Available", "status": "False", "reason": "ServiceNotFound"}), "ServiceNotFound"},
		"an empty reason": {service(map[string]any{"type": "Available", "status": "False", "reason": ""}), "Available=False"},
		"no reason":       {service(map[string]any{"type": "Available", "status": "False"}), "Available=False"},
		"no condition":    {unstructured.Unstructured{Object: map[string]any{}}, ""},
	} {
		if got := whyUnavailable(c.service); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
