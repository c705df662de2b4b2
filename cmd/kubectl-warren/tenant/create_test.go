package tenant

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

func TestCreator(t *testing.T) {
	user := func(name string) []any { return []any{map[string]any{"kind": "User", "name": name}} }
	for name, c := range map[string]struct {
		caller string
		named  newTenant
		want   []any
	}{
		"ACC-W08 create-lns without a flag that names a person lists its caller as user": {"alice", newTenant{}, user("alice")},
		"ACC-W08 so it does with a service account that calls it": {"system:serviceaccount:ci:deployer", newTenant{},
			[]any{map[string]any{"kind": "ServiceAccount", "name": "deployer", "namespace": "ci"}}},
		"ACC-W09 create-lns adds no user if a flag names anybody": {"admin", newTenant{managers: subjects{users: []string{"mia"}}}, nil},
		"ACC-W09 create-lns adds nobody who can't be listed":      {"system:admin", newTenant{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			api := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
					object.(*authenticationv1.SelfSubjectReview).Status.UserInfo.Username = c.caller
					return nil
				}})
			lns := &unstructured.Unstructured{Object: map[string]any{}}
			if err := c.named.addCreator(t.Context(), api, lns); err != nil {
				t.Fatal(err)
			}
			users, _, _ := unstructured.NestedSlice(lns.Object, "spec", "users")
			if diff := cmp.Diff(c.want, users); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestSudoCommand(t *testing.T) {
	t.Run("ACC-P17 who may not change a list is told the whole command with sudo", func(t *testing.T) {
		for name, want := range map[string]string{
			"carol":  "kubectl sudo --tenant payments warren add carol --kind Group --tenant payments --list users",
			"o'x; y": `kubectl sudo --tenant payments warren add 'o'\''x; y' --kind Group --tenant payments --list users`,
		} {
			l := &listed{tenant: "payments", kind: &invocation.Choice{Value: string(v1alpha1.SubjectGroup)},
				list: &invocation.Choice{Value: listUsers}}
			if got := l.buildSudoCommand("add", name); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		}
	})
}
