package apianswer_test

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/apianswer"
)

var secrets = schema.GroupResource{Resource: "secrets"}

func terminating() error {
	err := apierrors.NewForbidden(secrets, "s", errors.New("the namespace is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

func TestIsRefusal(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"None":        {nil, false},
		"Forbidden":   {apierrors.NewForbidden(secrets, "s", errors.New("no")), true},
		"Wrapped":     {fmt.Errorf("writing: %w", apierrors.NewBadRequest("no")), true},
		"Busy":        {apierrors.NewTooManyRequests("later", 1), false},
		"Unavailable": {apierrors.NewServiceUnavailable("later"), false},
		"PROP-P11 the answer of etcd that a request is " +
			"too large is a refusal": {apierrors.NewInternalError(errors.New("etcdserver: request is too large")), true},
		"Internal": {apierrors.NewInternalError(errors.New("etcdserver: request timed out")), false},
		"NoAnswer": {errors.New("connection refused"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := apianswer.IsRefusal(tc.err); got != tc.want {
				t.Errorf("IsRefusal(%v) is %t", tc.err, got)
			}
		})
	}
}

func TestIsGone(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"None":        {nil, false},
		"NotFound":    {apierrors.NewNotFound(secrets, "s"), true},
		"Terminating": {terminating(), true},
		"Forbidden":   {apierrors.NewForbidden(secrets, "s", errors.New("no")), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := apianswer.IsGone(tc.err); got != tc.want {
				t.Errorf("IsGone(%v) is %t", tc.err, got)
			}
		})
	}
}
