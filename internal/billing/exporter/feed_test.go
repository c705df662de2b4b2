package exporter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"

	"github.com/warren-tenancy/warren/internal/billing/apiserver"
	"github.com/warren-tenancy/warren/internal/forest"
)

// pages answers lists of Namespaces in pages of two.
type pages struct {
	apiserver.Reader
	names []string
	// expire makes the list's continue token expire at the second page, once.
	expire bool
	asked  []string
}

func (p *pages) List(_ context.Context, list apiserver.List, o metav1.ListOptions) error {
	p.asked = append(p.asked, fmt.Sprintf("%d %q %q", o.Limit, o.Continue, o.ResourceVersion))
	from := 0
	if o.Continue != "" {
		if p.expire {
			p.expire = false
			return apierrors.NewResourceExpired("the list is too old")
		}
		_, _ = fmt.Sscan(o.Continue, &from)
	}
	all := list.(*metav1.PartialObjectMetadataList)
	all.ResourceVersion = "9"
	for i := from; i < len(p.names); i++ {
		if o.Limit > 0 && i == from+2 {
			all.Continue = fmt.Sprint(i)
			break
		}
		all.Items = append(all.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: p.names[i], UID: types.UID("uid-" + p.names[i])}})
	}
	return nil
}

// known are the names that a cluster has once the queue is applied.
func known(c *cluster, q *queue) []string {
	for _, change := range q.take() {
		c.apply(change)
	}
	return slices.Sorted(c.forest.All())
}

// readAll reads a list as a reflector does, in pages of two.
func readAll(t *testing.T, f *feed, api apiserver.Reader) error {
	t.Helper()
	list := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return f.readPage(ctx, api, o)
	})
	list.PageSize = 2
	_, _, err := list.ListWithAlloc(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	return errors.Join(err, f.Replace(nil, ""))
}

func TestPages(t *testing.T) {
	for name, expire := range map[string]bool{"in one moment": false, "whose moment passes": true} {
		t.Run("BILL-74 pages "+name, func(t *testing.T) {
			q, c := newQueue(time.Now), newCluster(forest.Rules{})
			f := newFeeds(q)[0]
			api := &pages{names: []string{"a", "b", "c", "d", "e"}, expire: expire}
			if err := readAll(t, f, api); err != nil {
				t.Fatal(err)
			}
			if got := known(c, q); !slices.Equal(got, api.names) {
				t.Errorf("known are %v", got)
			}
			api.names = []string{"b", "d", "f"}
			if err := readAll(t, f, api); err != nil {
				t.Fatal(err)
			}
			if got := known(c, q); !slices.Equal(got, api.names) {
				t.Errorf("after the second list known are %v", got)
			}
			if slices.ContainsFunc(api.asked, func(asked string) bool { return asked[len(asked)-2:] != `""` }) {
				t.Errorf("a list of any version comes whole, whatever the limit: %v", api.asked)
			}
		})
	}
}
