package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/report"
)

// verbs are offered by the shell's completion. Others are as good.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind", "escalate", "impersonate", "use"}

// nameless are verbs of requests that act on no one object.
var nameless = []string{"create", "list", "watch", "deletecollection"}

// unlisted are resources that no API server serves: they stand in rules about impersonation only.
var unlisted = []string{"users", "groups", "uids", "userextras"}

// readQuestion reads a verb and RESOURCE[/NAME] as `kubectl auth can-i` does, in the namespace of the command line.
func (p *plugin) readQuestion(cmd *cobra.Command, verb, resource, subresource string) (*report.Reporter, report.Question, error) {
	var question report.Question
	resource, name, named := strings.Cut(resource, "/")
	if resource == "" || verb == "" || named && name == "" {
		return nil, question, fmt.Errorf("name a verb and a RESOURCE or RESOURCE/NAME, such as: delete secrets/db")
	}
	reporter, err := p.newReporter()
	if err != nil {
		return nil, question, err
	}
	found, namespaced, err := p.findResource(resource)
	if err != nil {
		return nil, question, err
	}
	question = report.Question{Verb: verb, Group: found.Group, Resource: found.Resource, Subresource: subresource, Name: name}
	switch {
	case namespaced:
		question.Namespace, _, err = p.flags.ToRawKubeConfigLoader().Namespace()
		if err == nil {
			err = mustExist(cmd, reporter.API, question.Namespace)
		}
		return reporter, question, err
	case cmd.Flags().Changed("namespace"):
		terminal.Fprintf(p.streams.ErrOut, "Warning: %s are not namespaced: --namespace is not used\n", found)
	}
	if found.Group == "" && found.Resource == "namespaces" && !slices.Contains(nameless, verb) {
		question.Namespace = name // as the API server takes a request for one namespace
	}
	return reporter, question, nil
}

// findResource finds a resource by its name, a short name or a singular, with or without its group.
func (p *plugin) findResource(name string) (found schema.GroupResource, namespaced bool, err error) {
	if name == "*" {
		return schema.GroupResource{Group: "*", Resource: "*"}, true, nil
	}
	mapping, err := p.findMapping(name)
	var unserved unservedError
	switch {
	case err == nil:
		return mapping.Resource.GroupResource(), mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
	case errors.As(err, &unserved) && slices.Contains(unlisted, unserved.Resource):
		return unserved.GroupResource, false, nil
	}
	return found, false, err
}

// unservedError names a resource that the API server doesn't have.
type unservedError struct {
	name string
	schema.GroupResource
}

func (e unservedError) Error() string {
	return fmt.Sprintf("the API server has no resource %q: kubectl api-resources lists them", e.name)
}

// findMapping finds the kind of a resource.
func (p *plugin) findMapping(name string) (*meta.RESTMapping, error) {
	mapper, err := p.flags.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	full, short := schema.ParseResourceArg(strings.ToLower(name))
	candidates := []schema.GroupVersionResource{short.WithVersion("")}
	if full != nil {
		candidates = append([]schema.GroupVersionResource{*full}, candidates...)
	}
	for _, candidate := range candidates {
		var kind schema.GroupVersionKind
		if kind, err = mapper.KindFor(candidate); err != nil {
			continue
		}
		var found *meta.RESTMapping
		if found, err = mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil {
			return found, nil
		}
	}
	if meta.IsNoMatchError(err) {
		return nil, unservedError{name, short}
	}
	return nil, err
}

// mustExist fails if the caller can see that there is no such namespace.
func mustExist(cmd *cobra.Command, api client.Reader, name string) error {
	_, err := readNamespace(cmd.Context(), api, name)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no namespace %q", name)
	case failure.Refused(err):
		return nil
	}
	return err
}

// namespacedResources are the resources that the API server has, and whether they are namespaced. Those of an API service that
// doesn't answer are missing.
func (p *plugin) namespacedResources() (map[schema.GroupResource]bool, error) {
	api, err := p.flags.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	_, lists, err := api.ServerGroupsAndResources()
	var partly *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partly) {
		return nil, err
	}
	found := map[schema.GroupResource]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			found[schema.GroupResource{Group: version.Group, Resource: resource.Name}] = resource.Namespaced
		}
	}
	return found, nil
}

// completeTenant offers the tenants; none where the user may not list LNamespaces.
func (p *plugin) completeTenant(cmd *cobra.Command, named []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(named) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if !cmd.Flags().Changed("request-timeout") {
		*p.flags.Timeout = completionPatience
	}
	api, err := p.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	tenants := &v1alpha1.LNamespaceList{}
	if err := api.List(cmd.Context(), tenants); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, tenant := range tenants.Items {
		if strings.HasPrefix(tenant.Name, begun) {
			names = append(names, tenant.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeQuestion offers verbs for the argument at a position, and resources for the next.
func (p *plugin) completeQuestion(position int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, named []string, begun string) ([]string, cobra.ShellCompDirective) {
		switch len(named) - position {
		case 0:
			return verbs, cobra.ShellCompDirectiveNoFileComp
		case 1:
			return p.resourceNames(cmd, begun), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

func (p *plugin) resourceNames(cmd *cobra.Command, begun string) []string {
	if !cmd.Flags().Changed("request-timeout") {
		*p.flags.Timeout = completionPatience
	}
	served, err := p.namespacedResources()
	if err != nil {
		return nil
	}
	var names []string
	for resource := range served {
		name := resource.String()
		if strings.HasPrefix(name, begun) && !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
