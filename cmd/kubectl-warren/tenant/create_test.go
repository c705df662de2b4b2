package tenant

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/change"
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

func TestNextSteps(t *testing.T) {
	rbac := apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("lnamespaces").GroupResource(), "",
		errors.New(`User "alice" cannot create resource "lnamespaces"`))
	webhook := apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("lnamespaces").GroupResource(), "x", errors.New("namespace x exists"))
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"ACC-W19 who may not create a tenant reads whom to ask, and for which ClusterRole": {rbac, rbac.Error() +
			"; ask a cluster admin to create the tenant, or for ClusterRole warren:lnamespace-creator"},
		"a webhook's refusal stays as it is": {webhook, webhook.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			if got := explainCreation(c.err).Error(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	for name, c := range map[string]struct {
		flags []string
		want  string
	}{
		"ACC-W20 create-lns and add tell how users find the tenant, which their rights don't name": {nil,
			"Tell its users: kubectl config set-context --current --namespace=payments, then kubectl warren tree\n"},
		"ACC-W20 they tell nothing after a dry run":            {[]string{"--dry-run=server"}, ""},
		"ACC-W20 they tell nothing where a program reads them": {[]string{"-oname"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := &cobra.Command{}
			options := change.AddFlags(cmd)
			if err := cmd.ParseFlags(c.flags); err != nil {
				t.Fatal(err)
			}
			var told bytes.Buffer
			tellHowToFind(&invocation.Invocation{Streams: genericiooptions.IOStreams{ErrOut: &told}}, options, "payments")
			if got := told.String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
