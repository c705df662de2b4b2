package sudo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/ownrights"
	"github.com/warren-tenancy/warren/internal/grants"
)

// identity is the user's name, and the users and groups that the user may impersonate: separately by legacy and by
// constrained impersonation, because the API server doesn't combine the two.
type identity struct {
	user                string
	rights              ownrights.Rights
	legacy, constrained become
}

// become is the users and groups that the user may impersonate by one form of impersonation.
type become struct{ users, groups ownrights.Names }

// identifyUser asks the API server for the user's name and rules.
func (c *call) identifyUser(ctx context.Context) (identity, error) {
	api, err := c.buildClient(nobody)
	if err != nil {
		return identity{}, err
	}
	self, err := ownrights.Identify(ctx, api)
	if err != nil {
		return identity{}, err
	}
	namespace, _, err := c.targetNamespace()
	if err != nil {
		return identity{}, err
	}
	rights, _, err := ownrights.Ask(ctx, api, namespace)
	if err != nil {
		return identity{}, err
	}
	return identityOf(self.Username, rights), nil
}

// checkImpersonation returns an error if a proxy in front of the API server drops the headers of impersonation: then
// kubectl would act with the user's own rights, and report only those. It also returns one if a gateway refuses them.
// Every other problem is left to kubectl. For example, the API server refuses this review if impersonation is
// constrained to namespaces.
func (c *call) checkImpersonation(ctx context.Context, as rest.ImpersonationConfig) error {
	api, err := c.buildClient(as)
	if err != nil {
		return err
	}
	whom, without := "user "+as.UserName, ""
	if len(as.Groups) > 0 {
		whom, without = whom+" and group "+as.Groups[0], " without group "+as.Groups[0]
	}
	self, err := ownrights.Identify(ctx, api)
	if isGatewayRefusal(err) {
		return fmt.Errorf("a gateway in front of the API server refuses impersonation, which sudo needs (its answer: %w): use a kubeconfig "+
			"that reaches the API server without it, or ask its admin to let you impersonate %s", err, whom)
	}
	isEffective := self.Username == as.UserName
	if len(as.Groups) > 0 { // one's own name is no sign
		isEffective = slices.Contains(self.Groups, as.Groups[0])
	}
	if err != nil || isEffective {
		return nil //nolint:nilerr // without an answer, kubectl itself shows what is wrong
	}
	return fmt.Errorf("a proxy in front of the API server drops the headers Impersonate-User and Impersonate-Group, so sudo has no effect "+
		"(the API server sees %s%s): use a kubeconfig that reaches the API server without this proxy", self.Username, without)
}

// isGatewayRefusal reports whether a 403 is not the API server's own, such as the one of Teleport: "impersonation request
// has been denied". Every 403 of the API server's authorizer says what the user cannot do.
func isGatewayRefusal(err error) bool {
	return apierrors.IsForbidden(err) && !strings.Contains(err.Error(), " cannot ")
}

// identityOf derives the identity from the user's rights. Rules that don't concern impersonation are ignored.
func identityOf(user string, rights ownrights.Rights) identity {
	form := func(form ownrights.Form) become {
		return become{users: rights.Impersonated(form, "users"), groups: rights.Impersonated(form, "groups")}
	}
	return identity{user: user, rights: rights, legacy: form(ownrights.Legacy), constrained: form(ownrights.Constrained)}
}

// sudoTenants returns the tenants whose groups of sudoers the user's rights name, in alphabetical order. A user who may
// impersonate any group may use sudo in other tenants too.
func (i identity) sudoTenants() []string { return i.rights.Sudo() }

// isSudoerEverywhere reports whether the user may impersonate any group, as cluster admins may.
func (i identity) isSudoerEverywhere() bool { return i.legacy.groups.All || i.constrained.groups.All }

// isSudoerOf reports whether the user may impersonate the tenant's group of sudoers.
func (i identity) isSudoerOf(tenant string) bool {
	group := v1alpha1.SudoersGroup(tenant)
	return i.legacy.groups.Has(group) || i.constrained.groups.Has(group)
}

// impersonatedUser returns the user to impersonate together with the tenant's group: the user's own name if that is
// allowed. Otherwise it is warren:sudo:TENANT, a user without rights. The members of Groups, and the ServiceAccounts,
// in the list of sudoers impersonate that user (ACC Dec1).
func (i identity) impersonatedUser(tenant string) string {
	group := v1alpha1.SudoersGroup(tenant)
	for _, form := range []become{i.legacy, i.constrained} {
		if form.groups.Has(group) && form.users.Has(i.user) {
			return i.user
		}
	}
	return grants.SudoUser(tenant)
}

// impersonation returns whom the user impersonates for sudo in a tenant.
func (i identity) impersonation(tenant string) rest.ImpersonationConfig {
	return rest.ImpersonationConfig{UserName: i.impersonatedUser(tenant), Groups: []string{v1alpha1.SudoersGroup(tenant)}}
}

// constrainedIn reports whether the user may impersonate the tenant's group by constrained impersonation, for which the
// API server checks each request's verb and resource.
func (i identity) constrainedIn(tenant string) bool {
	return i.constrained.groups.Has(v1alpha1.SudoersGroup(tenant))
}
