package apianswer_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/warren-tenancy/warren/internal/apianswer"
)

func TestContinuation(t *testing.T) {
	expired := apierrors.NewResourceExpired("the moment is compacted away")
	goesOn := apierrors.NewResourceExpired("the moment is compacted away")
	goesOn.ErrStatus.Continue = "token"
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"None":         {nil, ""},
		"Other":        {errors.New("connection refused"), ""},
		"WithoutToken": {expired, ""},
		"WithToken":    {goesOn, "token"},
	} {
		t.Run(name, func(t *testing.T) {
			token, ok := apianswer.Continuation(tc.err)
			if token != tc.want || ok != (tc.want != "") {
				t.Errorf("Continuation(%v) is %q, %t; want %q", tc.err, token, ok, tc.want)
			}
		})
	}
}
