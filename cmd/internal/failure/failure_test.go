package failure

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The refusal of constrained impersonation has the text that API server 1.36.3 sent.
func TestRefused(t *testing.T) {
	forbidden := func(resource, text string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New(text))
	}
	cases := map[string]struct {
		err                   error
		refused, impersonated bool
	}{
		"no right": {forbidden("namespaces",
			`User "alice" cannot list resource "namespaces" in API group "" at the cluster scope`), true, false},
		"impersonation": {forbidden("users", `User "alice" cannot impersonate resource "users" in API group "" at the cluster scope`),
			false, true},
		"constrained impersonation": {forbidden("namespaces",
			`User "alice" cannot impersonate-on:user-info:list resource "namespaces" in API group "" at the cluster scope`), false, true},
		"something else": {apierrors.NewUnauthorized("no"), false, false},
		"nothing":        {nil, false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if Refused(c.err) != c.refused || ImpersonationRefused(c.err) != c.impersonated {
				t.Errorf("refused %t, impersonation refused %t", Refused(c.err), ImpersonationRefused(c.err))
			}
		})
	}
}
