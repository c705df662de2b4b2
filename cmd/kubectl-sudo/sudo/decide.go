package sudo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/internal/sudo"
)

// done are the verdicts, as they are reported to whoever made them.
var done = map[v1alpha1.SudoVerdict]string{
	v1alpha1.SudoApprove: "approved", v1alpha1.SudoDeny: "denied", v1alpha1.SudoEnd: "ended",
}

// decide adds a decision to a request. It is a JSON patch that only adds, so that two decisions at once both stay.
func (c *call) decide(ctx context.Context, a *asking, verdict v1alpha1.SudoVerdict, name string) error {
	api, me, tenant, err := c.beginRequest(ctx)
	if err != nil {
		return err
	}
	if name == "" {
		if name, err = findOnlyOpen(ctx, api, tenant, me); err != nil {
			return err
		}
	}
	body, err := json.Marshal([]map[string]any{{"op": "add", "path": "/spec/decisions/-",
		"value": v1alpha1.SudoDecision{User: me, Group: a.group, Verdict: verdict, Comment: a.comment}}})
	if err != nil {
		return err
	}
	r := &v1alpha1.SudoRequest{}
	r.Namespace, r.Name = tenant, name
	if err := api.Patch(ctx, r, client.RawPatch(types.JSONPatchType, body)); err != nil {
		return fmt.Errorf("deciding on SudoRequest %s of %s: %w", name, tenant, err)
	}
	terminal.Fprintf(c.streams.Out, "%s %s of %s, who asks for %s: %s\n", done[verdict], name, r.Spec.User, string(r.Spec.Duration),
		r.Spec.Reason)
	return nil
}

// findOnlyOpen returns the name of the only request of a user that is not finished.
func findOnlyOpen(ctx context.Context, api client.Client, tenant, user string) (string, error) {
	all := &v1alpha1.SudoRequestList{}
	if err := api.List(ctx, all, client.InNamespace(tenant)); err != nil {
		return "", fmt.Errorf("listing the requests of %s: %w", tenant, err)
	}
	var open []string
	for i := range all.Items {
		if r := &all.Items[i]; r.Spec.User == user && !sudo.IsFinished(r) {
			open = append(open, r.Name)
		}
	}
	switch len(open) {
	case 0:
		return "", fmt.Errorf("%s has no open request in %s: nothing to end", user, tenant)
	case 1:
		return open[0], nil
	}
	return "", fmt.Errorf("%s has several open requests in %s, choose one: %s", user, tenant, strings.Join(open, ", "))
}
