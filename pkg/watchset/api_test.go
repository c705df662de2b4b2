package watchset_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// api is an API server in memory that serves lists, watches, discovery and reviews, with metadata only. So a case may take ten minutes of a
// fake clock. The cases of test/integration/informers run against a real server.
type api struct {
	mu        sync.Mutex
	rights    map[string]bool // "VERB RESOURCE NAMESPACE"; namespace * is cluster-wide
	missing   map[string]bool // resources that discovery lacks
	refuses   bool            // reviews are refused
	rules     bool            // SelfSubjectRulesReviews are served, and complete
	denied    string          // a SelfSubjectRulesReview reports that nothing is allowed in this namespace
	troubled  bool            // an authorizer fails: SelfSubjectAccessReviews deny, with an evaluation error
	selects   string          // unless it is "", reviews deny requests without this label selector
	reviewed  func(verb string) (allowed, known bool)
	down      bool          // every request is answered with 500
	throttles bool          // every request is answered with 429
	oldest    int           // watches from earlier resourceVersions fail as expired
	resume    chan struct{} // each value lets one hanging request continue
	slow      chan struct{} // discovery waits for this channel, unless it is nil
	breaks    string        // watches of this namespace are answered with 500
	old       bool          // watches with sendInitialEvents are not supported, as by old servers
	hangs     string        // requests for this namespace get no answer
	lags      int           // unless 0, cluster-wide watches begin with the objects as of this resourceVersion; later changes follow as events
	versions  []string      // of the group example.com, the preferred one last; nil: v1 alone, as of all other groups
	version   int
	objects   map[string]*metav1.PartialObjectMetadata // "RESOURCE NAMESPACE/NAME"
	streams   map[*stream]struct{}
	requests  []request
}

type request struct {
	at                        time.Time
	verb, resource, namespace string
	limit                     string
	code                      int
}

type stream struct {
	resource, namespace, name string
	out                       chan []byte
	done                      <-chan struct{}
}

func newAPI(rights ...string) *api {
	a := &api{rights: map[string]bool{}, missing: map[string]bool{}, objects: map[string]*metav1.PartialObjectMetadata{},
		streams: map[*stream]struct{}{}}
	a.grant(rights...)
	return a
}

func (a *api) config() *rest.Config { return &rest.Config{Host: "http://api", Transport: a} }

func (a *api) grant(rights ...string)  { a.set(true, rights...) }
func (a *api) revoke(rights ...string) { a.set(false, rights...) }

func (a *api) set(to bool, rights ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, right := range rights {
		a.rights[right] = to
	}
}

func (a *api) do(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// count counts requests. An empty argument means any.
func (a *api) count(verb, resource string) int { return len(a.times(verb, resource)) }

func (a *api) times(verb, resource string) []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []time.Time
	for _, r := range a.requests {
		if (verb == "" || verb == r.verb) && (resource == "" || resource == r.resource) {
			found = append(found, r.at)
		}
	}
	return found
}

// limits returns the limits of all lists.
func (a *api) limits() (limits []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.requests {
		if r.verb == "list" {
			limits = append(limits, r.limit)
		}
	}
	return limits
}

func (a *api) open() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.streams)
}

// streaming counts the open watches of a resource.
func (a *api) streaming(resource string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for s := range a.streams {
		if s.resource == resource {
			n++
		}
	}
	return n
}

// put makes or changes an object, remove deletes it.
func (a *api) put(resource, namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	key := resource + " " + namespace + "/" + name
	kind, old := "MODIFIED", a.objects[key]
	if old == nil {
		kind, old = "ADDED", &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: types.UID(strconv.Itoa(a.version))}}
	}
	now := old.DeepCopy()
	now.APIVersion, now.Kind = "meta.k8s.io/v1", "PartialObjectMetadata"
	now.Namespace, now.Name, now.ResourceVersion = namespace, name, strconv.Itoa(a.version)
	a.objects[key] = now
	a.send(kind, resource, now)
}

func (a *api) remove(resource, namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	key := resource + " " + namespace + "/" + name
	gone := a.objects[key].DeepCopy()
	gone.ResourceVersion = strconv.Itoa(a.version)
	delete(a.objects, key)
	a.send("DELETED", resource, gone)
}

func (a *api) send(kind, resource string, object *metav1.PartialObjectMetadata) {
	for s := range a.streams {
		if s.resource == resource && s.matches(object) {
			s.event(kind, object)
		}
	}
}

func (s *stream) matches(object *metav1.PartialObjectMetadata) bool {
	return (s.namespace == "" || s.namespace == object.Namespace) && (s.name == "" || s.name == object.Name)
}

func (s *stream) event(kind string, object *metav1.PartialObjectMetadata) {
	frame, err := json.Marshal(metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Object: object}})
	if err != nil {
		panic(err)
	}
	s.out <- frame
}

// drop ends all watches, as a server does from time to time.
func (a *api) drop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for s := range a.streams {
		close(s.out)
		delete(a.streams, s)
	}
}

// RoundTrip implements http.RoundTripper.
func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hangs != "" && strings.Contains(r.URL.Path, "/namespaces/"+a.hangs+"/") {
		a.mu.Unlock()
		select {
		case <-r.Context().Done():
		case <-a.resume: // nil unless a case makes it
		}
		a.mu.Lock()
	}
	if parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/"); a.slow != nil &&
		(len(parts) == 2 || parts[0] == "apis" && len(parts) == 3) {
		a.mu.Unlock()
		select {
		case <-r.Context().Done():
		case <-a.slow:
		}
		a.mu.Lock()
	}
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group := path[:min(len(path), 2)]
	if path[0] == "apis" {
		group = path[:min(len(path), 3)]
	}
	rest := path[len(group):]
	done := request{at: time.Now(), code: http.StatusOK}
	var answer any
	var body io.ReadCloser
	switch {
	case a.down:
		done.code, done.verb = http.StatusInternalServerError, "down"
		answer = failure(done.code, metav1.StatusReasonInternalError)
	case a.throttles:
		done.code, done.verb = http.StatusTooManyRequests, "throttled"
		answer = failure(done.code, metav1.StatusReasonTooManyRequests)
	case len(rest) == 0:
		done.verb = "discover"
		done.code, answer = a.discover(group)
	case rest[0] == "selfsubjectrulesreviews" && a.rules:
		done.verb = "rules"
		done.code, answer = a.reviewRules(r)
	case rest[0] == "selfsubjectaccessreviews":
		done.verb = "review"
		done.code, answer = a.review(r)
	case !slices.Contains(a.versionsOf(group[1]), group[len(group)-1]):
		done.code, answer = http.StatusNotFound, failure(http.StatusNotFound, metav1.StatusReasonNotFound)
	default:
		done.code, answer, body = a.read(r, rest, &done)
	}
	a.requests = append(a.requests, done)
	if body == nil {
		text, err := json.Marshal(answer)
		if err != nil {
			return nil, err
		}
		body = io.NopCloser(bytes.NewReader(text))
	}
	return &http.Response{
		StatusCode: done.code, Status: http.StatusText(done.code), Header: http.Header{"Content-Type": []string{"application/json"}},
		Body: body, Request: r,
	}, nil
}

func (a *api) allowed(verb, resource, namespace string) bool {
	return a.rights[verb+" "+resource+" *"] || a.rights[verb+" "+resource+" "+namespace]
}

func (a *api) read(r *http.Request, path []string, done *request) (int, any, io.ReadCloser) {
	query := r.URL.Query()
	done.verb = "list"
	if query.Get("watch") != "" {
		done.verb = "watch"
	}
	if path[0] == "namespaces" {
		done.namespace, path = path[1], path[2:]
	}
	done.resource, done.limit = path[0], query.Get("limit")
	switch {
	case !a.allowed(done.verb, done.resource, done.namespace):
		return http.StatusForbidden, failure(http.StatusForbidden, metav1.StatusReasonForbidden), nil
	case a.missing[done.resource]:
		return http.StatusNotFound, failure(http.StatusNotFound, metav1.StatusReasonNotFound), nil
	}
	if a.breaks == done.namespace && a.breaks != "" && done.verb == "watch" {
		return http.StatusInternalServerError, failure(http.StatusInternalServerError, metav1.StatusReasonInternalError), nil
	}
	if a.old && query.Get("sendInitialEvents") != "" {
		return http.StatusUnprocessableEntity, failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid), nil
	}
	if since, err := strconv.Atoi(query.Get("resourceVersion")); err == nil && since < a.oldest && done.verb == "watch" {
		return http.StatusGone, failure(http.StatusGone, metav1.StatusReasonExpired), nil
	}
	_, name, _ := strings.Cut(query.Get("fieldSelector"), "metadata.name=")
	s := &stream{resource: done.resource, namespace: done.namespace, name: name}
	if done.verb == "watch" {
		return http.StatusOK, nil, a.watch(r.Context(), s, query.Get("sendInitialEvents") == "true")
	}
	list := &metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
		ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(a.version)},
	}
	for _, object := range a.matching(s) {
		list.Items = append(list.Items, *object)
	}
	return http.StatusOK, list, nil
}

func (a *api) matching(s *stream) []*metav1.PartialObjectMetadata {
	var found []*metav1.PartialObjectMetadata
	for key, object := range a.objects {
		if strings.HasPrefix(key, s.resource+" ") && s.matches(object) {
			found = append(found, object)
		}
	}
	slices.SortFunc(found, func(a, b *metav1.PartialObjectMetadata) int { return strings.Compare(a.Name, b.Name) })
	return found
}

func (a *api) watch(ctx context.Context, s *stream, initial bool) io.ReadCloser {
	s.out, s.done = make(chan []byte, len(a.matching(s))+200), ctx.Done()
	a.streams[s] = struct{}{}
	if initial {
		version := a.version
		if s.namespace == "" && a.lags > 0 {
			version = a.lags
		}
		var later []*metav1.PartialObjectMetadata
		for _, object := range a.matching(s) {
			if made, _ := strconv.Atoi(object.ResourceVersion); made > version {
				later = append(later, object)
				continue
			}
			s.event("ADDED", object)
		}
		defer func() {
			for _, object := range later {
				s.event("ADDED", object)
			}
		}()
		s.event("BOOKMARK", &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
			ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(version), Annotations: map[string]string{
				metav1.InitialEventsAnnotationKey: "true",
			}},
		})
	}
	out, in := io.Pipe()
	go func() {
		for {
			select {
			case frame, ok := <-s.out:
				if !ok {
					_ = in.Close()
					return
				}
				if _, err := in.Write(frame); err != nil {
					a.leave(s)
					return
				}
			case <-s.done:
				_ = in.CloseWithError(ctx.Err())
				a.leave(s)
				return
			}
		}
	}()
	return &body{out, func() { a.leave(s) }}
}

func (a *api) leave(s *stream) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, open := a.streams[s]; open {
		delete(a.streams, s)
		close(s.out)
	}
}

// body is the body of a watch's response. It records that the client has closed it.
type body struct {
	*io.PipeReader
	closed func()
}

func (b *body) Close() error {
	b.closed()
	return b.PipeReader.Close()
}

func failure(code int, reason metav1.StatusReason) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason,
		Message: fmt.Sprintf("the server says %s", reason),
	}
}
