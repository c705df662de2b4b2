package sub

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

func TestWithoutRight(t *testing.T) {
	refused := func(reason string) error {
		return apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("subnamespaces").GroupResource(), "x", errors.New(reason))
	}
	rbac, webhook := refused(`User "alice" cannot create resource "subnamespaces"`), refused("the limit is reached")
	other := errors.New("no answer")
	const advice = "; namespace pya does not exist, or you may not make sub-namespaces in it: check the name, or ask a manager of its " +
		"tenant or a cluster admin for the right"
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"SUB-X16 a refusal by RBAC ends with the advice to check the name or ask for the right": {rbac, rbac.Error() + advice},
		"a webhook refuses": {webhook, webhook.Error()},
		"another error":     {other, other.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			if got := withoutRight(c.err, "pya").Error(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
