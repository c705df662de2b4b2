package sudo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/ownrights"
)

// temporary is the impersonation of a tenant's temporary sudoer, for which a granted SudoRequest gives the right.
func temporary(tenant string) rest.ImpersonationConfig {
	return rest.ImpersonationConfig{UserName: v1alpha1.TemporarySudoer(tenant)}
}

// listGrants asks the API server in which tenants the user has sudo on request now: there the user may become the temporary sudoer.
func (c *call) listGrants(ctx context.Context) ([]string, error) {
	api, err := c.buildClient(nobody)
	if err != nil {
		return nil, err
	}
	rights, _, err := ownrights.Ask(ctx, api, v1alpha1.SudoNamespace)
	if err != nil {
		return nil, err
	}
	return sets.List(rights.Impersonated(ownrights.Legacy, "serviceaccounts").Some), nil
}

// findGrant returns the tenant of a command that the user has no standing sudo for, if the user has sudo on request there. Otherwise it
// returns refusal, the reason against standing sudo, with how to ask for sudo where the user may.
func (c *call) findGrant(ctx context.Context, named string, refusal error) (string, error) {
	granted, err := c.listGrants(ctx)
	if err != nil {
		return "", err
	}
	tenant := cmp.Or(c.tenant, named)
	if tenant == "" {
		if tenant, err = c.tenantOfTarget(ctx, granted); err != nil {
			return "", err
		}
	}
	switch {
	case slices.Contains(granted, tenant):
		return tenant, nil
	case tenant == "" && len(granted) > 0:
		return "", errors.New("choose a tenant with --tenant before COMMAND: " + strings.Join(granted, ", "))
	case tenant == "":
		return "", refusal
	}
	api, err := c.buildClient(nobody)
	if err != nil {
		return "", err
	}
	rights, _, err := ownrights.Ask(ctx, api, tenant)
	if err != nil {
		return "", err
	}
	if rights.Names("create", v1alpha1.Domain, "sudorequests").All {
		return "", fmt.Errorf("you have no sudo in %s now; ask for it: kubectl sudo request --tenant %s --reason TEXT", tenant, tenant)
	}
	return "", refusal
}

// tenantOfTarget returns the tenant of the namespace in which kubectl will act; "" if it can't be read, or belongs to none. A user who may
// not read the namespace reads it by sudo on request.
func (c *call) tenantOfTarget(ctx context.Context, granted []string) (string, error) {
	name, said, err := c.targetNamespace()
	if c.about != "" && *c.flags.Namespace == "" {
		name, said = c.about, true
	}
	if err != nil || !said {
		return "", err
	}
	attempts := []rest.ImpersonationConfig{nobody}
	for _, tenant := range granted {
		attempts = append(attempts, temporary(tenant))
	}
	for _, as := range attempts {
		namespace := &corev1.Namespace{}
		if c.getObject(ctx, as, name, namespace) == nil {
			root, _, _ := strings.Cut(namespace.Annotations[v1alpha1.AnnotationAncestry], "/")
			return root, nil
		}
	}
	return name, nil // it may be the root of a tenant that the user can't read
}
