package sudo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
)

// tenantOf returns the tenant in which kubectl is to run: that of --tenant, else the one that COMMAND names, else the
// tenant of the namespace that COMMAND is about, or in which it acts. If the namespace doesn't exist, and the user is a
// sudoer of exactly one tenant, the result is that tenant.
func (c *call) tenantOf(ctx context.Context, me identity, named string) (string, error) {
	if tenant := cmp.Or(c.tenant, named); tenant != "" {
		return c.allowedTenant(ctx, me, tenant, "")
	}
	name, said, err := c.targetNamespace()
	if c.about != "" && *c.flags.Namespace == "" {
		name, said = c.about, true
	}
	switch {
	case err != nil:
		return "", err
	case !said && len(me.sudoTenants()) == 0 && !me.isSudoerEverywhere():
		return "", explainAmbiguity(me)
	case !said:
		return "", fmt.Errorf("no namespace is named, so kubectl would act in %s, which belongs to no tenant: add -n NAMESPACE; for a command "+
			"that needs none, %w",
			name, explainAmbiguity(me))
	}
	if name == metav1.NamespaceDefault || strings.HasPrefix(name, "kube-") { // protected, whatever the configuration says
		return "", noTenant(name)
	}
	namespace, err := c.readNamespace(ctx, me, name)
	switch {
	case apierrors.IsNotFound(err) && len(me.sudoTenants()) > 1:
		return "", fmt.Errorf("there is no namespace %s", name)
	case apierrors.IsNotFound(err):
		return soleTenant(me)
	case apierrors.IsForbidden(err) && len(me.sudoTenants()) > 0:
		if err := c.checkImpersonation(ctx, me.impersonation(me.sudoTenants()[0])); err != nil {
			return "", err
		}
		return "", fmt.Errorf("namespace %s does not exist, or belongs to no tenant of which %s is a sudoer: those are %s", name, me.user,
			strings.Join(me.sudoTenants(), ", "))
	case apierrors.IsForbidden(err):
		return soleTenant(me)
	case err != nil:
		return "", fmt.Errorf("reading namespace %s: %w", name, err)
	}
	root, _, _ := strings.Cut(namespace.Annotations[v1alpha1.AnnotationAncestry], "/")
	if root == "" {
		return "", noTenant(name)
	}
	return c.allowedTenant(ctx, me, root, name)
}

func noTenant(namespace string) error {
	return fmt.Errorf("namespace %s belongs to no tenant", namespace)
}

// soleTenant returns the tenant of a user who is a sudoer of exactly one; otherwise an error.
func soleTenant(me identity) (string, error) {
	if tenants := me.sudoTenants(); len(tenants) == 1 && !me.isSudoerEverywhere() {
		return tenants[0], nil
	}
	return "", explainAmbiguity(me)
}

// explainAmbiguity returns the error for a command whose tenant can't be determined.
func explainAmbiguity(me identity) error {
	switch tenants := me.sudoTenants(); {
	case len(tenants) > 0:
		return errors.New("choose a tenant with --tenant before COMMAND: " + strings.Join(tenants, ", "))
	case me.isSudoerEverywhere():
		return errors.New("choose a tenant with --tenant before COMMAND")
	}
	return fmt.Errorf("%s is not a sudoer of any tenant", me.user)
}

// readNamespace reads the namespace without sudo. If that is refused, it tries sudo in one of the user's tenants after
// the other: a sudoer who is no user of the tenant can't read its namespaces without sudo.
func (c *call) readNamespace(ctx context.Context, me identity, name string) (*corev1.Namespace, error) {
	namespace := &corev1.Namespace{}
	err := c.getObject(ctx, nobody, name, namespace)
	tenants := me.sudoTenants()
	if i := slices.Index(tenants, name); i > 0 { // the root has the tenant's name, so try that tenant first
		tenants = slices.Insert(slices.Delete(tenants, i, i+1), 0, name)
	}
	for _, tenant := range tenants {
		if !apierrors.IsForbidden(err) {
			break
		}
		err = c.getObject(ctx, me.impersonation(tenant), name, namespace)
	}
	return namespace, err
}

func (c *call) getObject(ctx context.Context, as rest.ImpersonationConfig, name string, object client.Object) error {
	api, err := c.buildClient(as)
	if err != nil {
		return err
	}
	return api.Get(ctx, client.ObjectKey{Name: name}, object)
}

// allowedTenant returns the tenant if the user is a sudoer of it. Otherwise its error reports that, or that there is no
// such tenant. If the LNamespace can be read, the error names the managers to ask. namespace is the one by which the
// tenant was found; empty if the user named the tenant.
func (c *call) allowedTenant(ctx context.Context, me identity, tenant, namespace string) (string, error) {
	if me.isSudoerOf(tenant) {
		return tenant, nil
	}
	text, others := fmt.Sprintf("%s is not a sudoer of %s", me.user, tenant), strings.Join(me.sudoTenants(), ", ")
	switch {
	case namespace != "":
		text += fmt.Sprintf(" (the tenant of namespace %s)", namespace)
	case others != "":
		text += ", but of " + others
	}
	lns := &v1alpha1.LNamespace{}
	err := c.getObject(ctx, nobody, tenant, lns)
	switch {
	case apierrors.IsNotFound(err) && namespace == "" && others != "":
		return "", fmt.Errorf("there is no tenant %s: %s is a sudoer of %s", tenant, me.user, others)
	case apierrors.IsNotFound(err) && namespace == "":
		return "", fmt.Errorf("there is no tenant %s, and %s is not a sudoer of any tenant: kubectl get lns lists the tenants", tenant, me.user)
	case err == nil && len(lns.Spec.Managers) > 0:
		text += "; ask a manager: " + namePeople(lns.Spec.Managers)
	}
	return "", errors.New(text) // a user who asked for sudo needn't know that the LNamespace can't be read
}

// namePeople returns subjects as text: users by their bare name, others with their kind.
func namePeople(subjects []v1alpha1.Subject) string {
	var named []string
	for _, subject := range subjects {
		if subject.Kind == v1alpha1.SubjectUser {
			named = append(named, subject.Name)
		} else {
			named = append(named, subject.String())
		}
	}
	return strings.Join(named, ", ")
}

// listTenants prints the tenants in which the user may sudo. For a user who may impersonate any group, these are all
// tenants that the user may list.
func (c *call) listTenants(ctx context.Context) error {
	me, err := c.identifyUser(ctx)
	if err != nil {
		return err
	}
	granted, err := c.listGrants(ctx)
	if err != nil {
		return err
	}
	tenants := slices.Concat(me.sudoTenants(), granted)
	if me.isSudoerEverywhere() {
		api, err := c.buildClient(nobody)
		if err != nil {
			return err
		}
		all := &v1alpha1.LNamespaceList{}
		if err := api.List(ctx, all); err != nil {
			return fmt.Errorf("listing tenants: %w", err)
		}
		for _, lns := range all.Items {
			tenants = append(tenants, lns.Name)
		}
	}
	slices.Sort(tenants)
	tenants = slices.Compact(tenants)
	if len(tenants) == 0 {
		terminal.Fprintf(c.streams.ErrOut, "%s is not a sudoer of any tenant\n", me.user)
	}
	for _, tenant := range tenants {
		terminal.Fprintln(c.streams.Out, tenant)
	}
	return nil
}
