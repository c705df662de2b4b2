package get

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"

	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// tableAccept asks the API server for a table. An API service that can't make one answers with objects.
const tableAccept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

// pageSize is how many objects one request lists at most, as in kubectl.
const pageSize = 500

// requests makes the requests for one kind.
type requests struct {
	mapping          *meta.RESTMapping
	client           rest.Interface
	selector, fields string
}

func newRequests(config *rest.Config, mapping *meta.RESTMapping, o *options) (*requests, error) {
	config = rest.CopyConfig(config)
	config.ContentConfig = resource.UnstructuredPlusDefaultContentConfig()
	if o.isTable() {
		config.AcceptContentTypes = tableAccept
	}
	version := mapping.Resource.GroupVersion()
	config.GroupVersion, config.APIPath = &version, "/apis"
	if version.Group == "" {
		config.APIPath = "/api"
	}
	client, err := rest.RESTClientFor(config)
	return &requests{mapping, client, o.selector, o.fields}, err
}

// buildRequest returns a request for the objects of a namespace.
func (r *requests) buildRequest(namespace string, o metav1.ListOptions) *rest.Request {
	o.LabelSelector, o.FieldSelector = r.selector, r.fields
	return r.client.Get().Namespace(namespace).Resource(r.mapping.Resource.Resource).VersionedParams(&o,
		metav1.ParameterCodec)
}

// answer is what a namespace holds: the pages of its list, each a table or a list of objects, and the version of the
// list.
type answer struct {
	namespace, version string
	pages              []runtime.Object
	refused            bool
}

// listNamespace lists one namespace page by page. If the user lacks the right, it returns no error, but an answer with
// refused set.
func (r *requests) listNamespace(ctx context.Context, namespace string) (answer, error) {
	found := answer{namespace: namespace}
	for options := (metav1.ListOptions{Limit: pageSize}); ; {
		object, err := r.buildRequest(namespace, options).Do(ctx).Get()
		switch {
		case failure.Refused(err):
			return answer{namespace: namespace, refused: true}, nil
		case err != nil:
			return found, fmt.Errorf("list %s in %s: %w", r.mapping.Resource.Resource, namespace, err)
		}
		page, err := readTable(object)
		if err != nil {
			return found, err
		}
		list, err := meta.ListAccessor(page)
		if err != nil {
			return found, err
		}
		found.pages, found.version = append(found.pages, page), list.GetResourceVersion()
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return found, nil
		}
	}
}

// answers are the objects of one kind in all namespaces, in the order in which the namespaces were given.
type answers struct {
	*requests
	each []answer
}

// listAll lists the objects in all namespaces, several at once.
func (r *requests) listAll(ctx context.Context, namespaces []string) (*answers, error) {
	found := &answers{r, make([]answer, len(namespaces))}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(gather.AtOnce)
	for i, namespace := range namespaces {
		group.Go(func() (err error) {
			found.each[i], err = r.listNamespace(ctx, namespace)
			return err
		})
	}
	return found, group.Wait()
}

func (a *answers) listRefused() []string {
	var names []string
	for _, one := range a.each {
		if one.refused {
			names = append(names, one.namespace)
		}
	}
	return names
}

// warnRefused prints one line that names, for each kind, the namespaces that were left out because the user lacks the
// right. It returns an error if a single kind was asked for and all namespaces were left out.
func warnRefused(inv *invocation.Invocation, all []*answers, namespaces int) error {
	var refusals []string
	for _, a := range all {
		refused := a.listRefused()
		if len(refused) == 0 {
			continue
		}
		resource := a.mapping.Resource.GroupResource().String()
		if len(all) == 1 && len(refused) == namespaces {
			return fmt.Errorf("you may not list %s in any of your namespaces: %s", resource, shortenNames(refused))
		}
		refusals = append(refusals, fmt.Sprintf("%s in %s", resource, shortenNames(refused)))
	}
	if len(refusals) > 0 {
		terminal.Fprintf(inv.Streams.ErrOut, "Warning: you may not list %s: not shown\n", strings.Join(refusals, "; "))
	}
	return nil
}

// shortenNames names at most ten namespaces, each once.
func shortenNames(names []string) string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	const most = 10
	if rest := len(names) - most; rest > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), rest)
	}
	return strings.Join(names, ", ")
}

// listOf returns all objects of all namespaces as one list.
func listOf(all []*answers) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List",
		"metadata": map[string]any{"resourceVersion": ""}}}
	for _, a := range all {
		for _, one := range a.each {
			for _, page := range one.pages {
				if objects, ok := page.(*unstructured.UnstructuredList); ok {
					list.Items = append(list.Items, objects.Items...)
				}
			}
		}
	}
	return list
}
