package rights

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// verbs are offered by the shell's completion. Other verbs are accepted with a Warning: API servers that extend the
// cluster may have some.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind", "escalate", "impersonate",
	"use"}

// signers are the verbs of the API server on kind signers. All other verbs are unknown to it.
var signers = []string{"approve", "attest", "sign"}

// isKnown reports whether the API server asks for a right with this verb, such as impersonate:user-info.
func isKnown(verb string) bool {
	word, _, _ := strings.Cut(verb, ":")
	known := slices.Concat(verbs, signers, []string{"", "*", "impersonate-on"})
	return slices.Contains(known, word)
}

// nameless are verbs of requests that are not about one object.
var nameless = []string{"create", "list", "watch", "deletecollection"}

// unlisted are resources that no API server serves. Only rules about impersonation name them.
var unlisted = []string{"users", "groups", "uids", "userextras"}

// readQuestion reads a verb and RESOURCE[/NAME] as `kubectl auth can-i` does, in the namespace of the command line.
func readQuestion(inv *invocation.Invocation, cmd *cobra.Command,
	verb, resource, subresource string) (*Reporter, Question, error) {
	namespace, _, err := inv.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, Question{}, err
	}
	if !isKnown(verb) {
		terminal.Fprintf(inv.Streams.ErrOut, "Warning: the API server itself has no verb %q: the answer is about what roles allow\n", verb)
	}
	asked := Question{Verb: verb, Resource: resource, Subresource: subresource, Namespace: namespace}
	reporter, question, namespaced, err := ReadQuestion(cmd.Context(), inv, asked)
	if err == nil && !namespaced && cmd.Flags().Changed("namespace") {
		found := schema.GroupResource{Group: question.Group, Resource: question.Resource}
		terminal.Fprintf(inv.Streams.ErrOut, "Warning: %s are not namespaced: --namespace is not used\n", found)
	}
	return reporter, question, err
}

// ReadQuestion completes asked, in which a person has written the resource as RESOURCE[/NAME]. The namespace of asked
// counts only if the resource is namespaced; namespaced reports that.
func ReadQuestion(ctx context.Context, inv *invocation.Invocation,
	asked Question) (_ *Reporter, q Question, namespaced bool, err error) {
	resource, name, named := strings.Cut(asked.Resource, "/")
	if resource == "" || asked.Verb == "" || named && name == "" {
		return nil, q, false, fmt.Errorf("name a verb and a RESOURCE or RESOURCE/NAME, such as: delete secrets/db")
	}
	reporter, err := NewReporter(inv)
	if err != nil {
		return nil, q, false, err
	}
	found, namespaced, err := findResource(inv, resource)
	if err != nil {
		return nil, q, false, err
	}
	q = Question{Verb: asked.Verb, Group: found.Group, Resource: found.Resource, Subresource: asked.Subresource,
		Name: name}
	switch {
	case namespaced:
		q.Namespace = asked.Namespace
		err = checkNamespaceExists(ctx, reporter.API, q.Namespace)
	case found.Group == "" && found.Resource == "namespaces" && !slices.Contains(nameless, asked.Verb):
		q.Namespace = name // a request for one Namespace is authorized in the namespace itself
	}
	return reporter, q, namespaced, err
}

// findResource finds a resource by its name, a short name or a singular, with or without its group.
func findResource(inv *invocation.Invocation, name string) (found schema.GroupResource, namespaced bool, err error) {
	if name == "*" {
		return schema.GroupResource{Group: "*", Resource: "*"}, true, nil
	}
	mapping, err := inv.FindMapping(name)
	var unserved invocation.UnservedError
	switch {
	case err == nil:
		return mapping.Resource.GroupResource(), mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
	case errors.As(err, &unserved) && slices.Contains(unlisted, unserved.Resource):
		return unserved.GroupResource, false, nil
	}
	return found, false, err
}

// checkNamespaceExists fails if the caller can see that there is no such namespace.
func checkNamespaceExists(ctx context.Context, api client.Reader, name string) error {
	_, err := gather.ReadNamespace(ctx, api, name)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no namespace %q", name)
	case failure.Refused(err):
		return nil
	}
	return err
}

// completeTenant offers the tenants; none where the user may not list LNamespaces.
func completeTenant(inv *invocation.Invocation) cobra.CompletionFunc {
	return func(cmd *cobra.Command, named []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(named) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		inv.BoundCompletion(cmd)
		api, err := inv.Connect()
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
}

// completeQuestion offers verbs for the argument at a position, and resources for the next.
func completeQuestion(inv *invocation.Invocation, position int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, named []string, begun string) ([]string, cobra.ShellCompDirective) {
		switch len(named) - position {
		case 0:
			return verbs, cobra.ShellCompDirectiveNoFileComp
		case 1:
			return resourceNames(inv, cmd, begun), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

func resourceNames(inv *invocation.Invocation, cmd *cobra.Command, begun string) []string {
	inv.BoundCompletion(cmd)
	served, err := inv.NamespacedResources()
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
