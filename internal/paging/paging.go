// Package paging reads long lists from the API server, a page at a time, so that neither side holds a whole list in memory.
package paging

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/apianswer"
)

// Each lists the objects of list's kind in pages of size objects and calls do with each object once. It ends with the first error of do.
// The API server keeps the state of a list for five minutes by default. A list that takes longer continues, after the last object that
// was read, with the objects that exist then. If an object is created or deleted meanwhile, do may see the old or the new state.
func Each(ctx context.Context, api client.Reader, list client.ObjectList, size int64, do func(client.Object) error,
	scope ...client.ListOption) error {
	from := ""
	for {
		page := list.DeepCopyObject().(client.ObjectList)
		err := api.List(ctx, page, append([]client.ListOption{client.Limit(size), client.Continue(from)}, scope...)...)
		if next, expired := apianswer.Continuation(err); expired {
			from = next
			continue
		}
		if err != nil {
			return err
		}
		if err := meta.EachListItem(page, func(object runtime.Object) error { return do(object.(client.Object)) }); err != nil {
			return err
		}
		if from = page.GetContinue(); from == "" {
			return nil
		}
	}
}
