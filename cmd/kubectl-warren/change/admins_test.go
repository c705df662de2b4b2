package change_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/change"
)

func TestForAdmins(t *testing.T) {
	refused := func(reason string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "pay-web", errors.New(reason))
	}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"SUB-X43 whom RBAC refuses a command for cluster admins, such as move or template set, reads whom to ask": {
			refused(`User "alice" cannot patch resource "namespaces"`), "; this command is for cluster admins: ask one to run it"},
		"a webhook's refusal stays as it is": {refused("the limit is reached"), "the limit is reached"},
		"so does another error":              {errors.New("no answer"), "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := change.ForAdmins(&cobra.Command{RunE: func(*cobra.Command, []string) error { return fmt.Errorf("run: %w", c.err) }})
			if got := cmd.RunE(cmd, nil).Error(); !strings.HasSuffix(got, c.want) {
				t.Errorf("got %s\nwant %s at its end", got, c.want)
			}
		})
	}
}
