package propagation

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// counter is a Sink that counts.
type counter struct {
	replaced, forbidden atomic.Int32
}

func (c *counter) Replace([]*metav1.PartialObjectMetadata) { c.replaced.Add(1) }
func (c *counter) Put(*metav1.PartialObjectMetadata)       {}
func (c *counter) Gone(*metav1.PartialObjectMetadata)      {}
func (c *counter) Lost(err error) {
	if apierrors.IsForbidden(err) {
		c.forbidden.Add(1)
	}
}

// A list whose watch never opens grows old: a store that passed such lists on would have the kind planned anew at each list.
func TestAListCountsWithItsWatchAlone(t *testing.T) {
	t.Run("PROP-X7", func(t *testing.T) {
		var mayWatch atomic.Bool
		done := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.URL.Query().Get("watch") == "":
				_, _ = fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":[]}`)
			case mayWatch.Load() && r.URL.Query().Get("sendInitialEvents") == "":
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
				case <-done:
				}
			default:
				w.WriteHeader(http.StatusForbidden)
				_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`)
			}
		}))
		defer server.Close()
		defer close(done)
		watcher, err := newMetadataWatcher(&rest.Config{Host: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		sink := &counter{}
		running.Go(func() { watcher.ListAndWatch(ctx, secretKind.GroupVersion().WithResource("secrets"), "", sink) })
		defer running.Wait()
		defer cancel()
		becomes := func(what string, is func() bool) {
			t.Helper()
			for end := time.Now().Add(5 * time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal(what)
				}
			}
		}
		becomes("the watch was not tried a third time", func() bool { return sink.forbidden.Load() >= 3 })
		if n := sink.replaced.Load(); n != 0 {
			t.Errorf("%d lists counted although no watch was allowed", n)
		}
		mayWatch.Store(true)
		becomes("the list did not count once a watch was allowed", func() bool { return sink.replaced.Load() == 1 })
	})
}
