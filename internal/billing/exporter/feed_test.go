package exporter

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/forest"
)

// lister answers lists of Namespaces in pages of two, and watches.
type lister struct {
	client.WithWatch
	// streams reports whether the server streams a list, if the client asks for that.
	streams bool
	watches chan *watch.FakeWatcher

	mu    sync.Mutex // guards the fields below
	names []string
	// expire makes the list's continue token expire at the second page, once.
	expire bool
	asked  []string
}

func (s *lister) setNames(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = names
}

func namespaceOf(name string) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), ResourceVersion: "9"}}
}

func (s *lister) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := (&client.ListOptions{}).ApplyOptions(options).AsListOptions()
	s.asked = append(s.asked, fmt.Sprintf("%d %q", o.Limit, o.ResourceVersion))
	from, _ := strconv.Atoi(o.Continue)
	if from > 0 && s.expire {
		s.expire = false
		return apierrors.NewResourceExpired("the list is too old")
	}
	all := list.(*metav1.PartialObjectMetadataList)
	all.ResourceVersion = "9"
	for i := from; i < len(s.names); i++ {
		if o.Limit > 0 && i == from+2 {
			all.Continue = strconv.Itoa(i)
			break
		}
		all.Items = append(all.Items, namespaceOf(s.names[i]))
	}
	return nil
}

func (s *lister) Watch(_ context.Context, _ client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	streamed := refuseStream(options) != nil
	if streamed && !s.streams {
		return nil, refuseStream(options)
	}
	w := watch.NewFakeWithChanSize(100, false)
	if streamed {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, name := range s.names {
			object := namespaceOf(name)
			w.Add(&object)
		}
		end := namespaceOf("")
		end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		w.Action(watch.Bookmark, &end)
	}
	s.watches <- w
	return w, nil
}

func TestListsOfAFeed(t *testing.T) {
	for name, s := range map[string]*lister{
		"streamed":                         {streams: true},
		"in pages":                         {},
		"in pages whose moment has passed": {expire: true},
	} {
		t.Run("BILL-74 the exporter gets all present Namespaces by a stream, by pages, or after an expired page; "+
			"those that a later list lacks count as deleted: "+name, func(t *testing.T) {
			s.watches = make(chan *watch.FakeWatcher, 100)
			track := newTracker("c", forest.Rules{}, s, time.Now)
			follow := func(names ...string) {
				t.Helper()
				until(t, fmt.Sprintf("wanted %v", names), func() bool {
					track.mu.Lock()
					defer track.mu.Unlock()
					return slices.Equal(slices.Sorted(track.cluster.forest.All()), names)
				})
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s.setNames("a", "b", "c", "d", "e")
			go track.feeds[0].followKind(ctx, s)
			follow("a", "b", "c", "d", "e")
			s.setNames("b", "d", "f")
			(<-s.watches).Error(&metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired})
			follow("b", "d", "f")
			if i := slices.IndexFunc(s.asked, func(asked string) bool { return asked != `250 ""` && asked != `0 ""` }); i >= 0 {
				t.Errorf("a list of a given version may be old: %s", s.asked[i])
			}
			if s.streams != (len(s.asked) == 0) {
				t.Errorf("lists: %v", s.asked)
			}
		})
	}
}
