package failure

import (
	"context"
	"errors"
	"net/url"
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

func TestIsTransient(t *testing.T) {
	cases := map[string]struct {
		err  error
		want bool
	}{
		"not reached":   {&url.Error{Op: "Get", Err: errors.New("connection refused")}, true},
		"starting":      {apierrors.NewServiceUnavailable("starting"), true},
		"busy":          {apierrors.NewTooManyRequests("later", 1), true},
		"etcd restarts": {apierrors.NewInternalError(errors.New("no leader")), true},
		"no right":      {apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "", nil), false},
		"not there":     {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "x"), false},
		"interrupted":   {&url.Error{Op: "Get", Err: context.Canceled}, false},
		"something":     {errors.New("something"), false},
		"nothing":       {nil, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := IsTransient(c.err); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
