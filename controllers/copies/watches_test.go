package copies

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// A list counts only once its watch is open. Otherwise a kind that may be listed and not watched would be planned anew at each list.
func TestAListCountsWithItsWatchAlone(t *testing.T) {
	t.Run("PROP-X7 while a kind may be listed but not watched, it is forbidden, and no list counts; once it may be watched too, it is "+
		"active", func(t *testing.T) {
		var mayWatch atomic.Bool
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			query := r.URL.Query()
			switch {
			case r.URL.Path == "/api":
				_, _ = fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
			case r.URL.Path == "/api/v1":
				_,
					_ = fmt.Fprint(w,
					`{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"secrets","kind":"Secret","namespaced":true,"verbs":["list",`+
						`"watch"]}]}`)
			case r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
				body, _ := io.ReadAll(r.Body)
				allowed := mayWatch.Load() || !strings.Contains(string(body), `"watch"`)
				w.WriteHeader(http.StatusCreated)
				_, _ = fmt.Fprintf(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{},"status":{"allowed":%t}}`,
					allowed)
			case r.URL.Path == "/api/v1/secrets" && mayWatch.Load() && query.Get("sendInitialEvents") != "":
				w.WriteHeader(http.StatusUnprocessableEntity) // this server doesn't stream lists
				_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"no"}`)
			case r.URL.Path == "/api/v1/secrets" && query.Get("watch") == "":
				_, _ = fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":[]}`)
			case r.URL.Path == "/api/v1/secrets" && mayWatch.Load():
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			default:
				w.WriteHeader(http.StatusForbidden)
				_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`)
			}
		}))
		defer server.Close()
		set, err := watchset.New(&rest.Config{Host: server.URL}, watchset.Options{
			WatchRBAC: watchset.Off, WatchCRDs: watchset.Off, Backoff: watchset.Backoff{Initial: 10 * time.Millisecond, Max: 20 * time.Millisecond},
		})
		if err != nil {
			t.Fatal(err)
		}
		var listed, forbidden, synced atomic.Int32
		w := newWatches(set, func(input copyengine.Input) {
			switch one := input.(type) {
			case copyengine.Listed:
				listed.Add(1)
			case copyengine.WatchChanged:
				switch one.Status.State {
				case watchset.Forbidden:
					forbidden.Add(1)
				case watchset.Synced:
					synced.Add(1)
				}
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = set.Start(ctx) })
		running.Go(func() {
			_ = w.runWatches(ctx, []copyengine.Kind{{GroupVersionKind: secretKind, Mode: copies.All, Scope: copyengine.Cluster}})
		})
		defer running.Wait()
		defer cancel()
		becomes := func(what string, is func() bool) {
			t.Helper()
			for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal(what)
				}
			}
		}
		becomes("the watch was not refused", func() bool { return forbidden.Load() >= 1 })
		set.Poke()
		if listed.Load() != 0 || synced.Load() != 0 {
			t.Errorf("%d lists counted although no watch was allowed", listed.Load())
		}
		mayWatch.Store(true)
		becomes("the list did not count once a watch was allowed", func() bool { set.Poke(); return listed.Load() == 1 && synced.Load() == 1 })
	})
}
