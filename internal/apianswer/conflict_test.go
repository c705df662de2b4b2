package apianswer_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/apianswer"
)

var secrets = schema.GroupResource{Resource: "secrets"}

func TestAfterWrite(t *testing.T) {
	other := errors.New("connection refused")
	for name, tc := range map[string]struct {
		err   error
		again bool
		want  error
	}{
		"Success":  {nil, false, nil},
		"Conflict": {apierrors.NewConflict(secrets, "s", errors.New("changed")), true, nil},
		"Gone":     {apierrors.NewNotFound(secrets, "s"), false, nil},
		"Other":    {other, false, other},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := apianswer.AfterWrite(tc.err)
			if !errors.Is(err, tc.want) || (result.RequeueAfter > 0) != tc.again {
				t.Errorf("got %v, %v", result, err)
			}
		})
	}
}
