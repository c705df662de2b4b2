package sub

import (
	"context"
	"errors"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

func TestExplainCreation(t *testing.T) {
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
			if got := explainCreation(t.Context(), clusterOf(t), c.err, "pya").Error(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	t.Run("SUB-X26 to a manager who is no user of the tenant, the refusal names the command that adds the manager "+
		"to the users", func(t *testing.T) {
		api := interceptor.NewClient(clusterOf(t, &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}), interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
				object.(*authenticationv1.SelfSubjectReview).Status.UserInfo.Username = "alice"
				return nil
			}})
		if got := explainCreation(t.Context(), api, rbac, "mine").Error(); !strings.HasSuffix(got,
			"add yourself: kubectl warren add alice --tenant mine --list users") {
			t.Errorf("got %s", got)
		}
	})
}
