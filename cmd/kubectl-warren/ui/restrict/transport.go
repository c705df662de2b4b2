// Package restrict limits what the page's server may ask the API server: reads, reviews, dry runs, and those changes
// that the person has confirmed in exactly that form. Of objects of most kinds, it may read nothing but metadata.
package restrict

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Change is a request that changes something, as a person has confirmed it.
type Change struct {
	Method, URI string
	Body        []byte
}

type changeKey struct{}

// Confirm returns a context in which the transport lets pass exactly that change.
func Confirm(ctx context.Context, change Change) context.Context {
	return context.WithValue(ctx, changeKey{}, change)
}

// Transport is the only way of the page's server to the API server.
type Transport struct {
	next   http.RoundTripper
	prefix string
}

// NewTransport returns a transport that sends the requests that it allows through next. prefix is the path of the API
// server's address, "" or such as "/k8s/clusters/one".
func NewTransport(next http.RoundTripper, prefix string) http.RoundTripper {
	return &Transport{next, strings.TrimSuffix(prefix, "/")}
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (t *Transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip sends a request if checkRequest allows it, and asks for metadata alone where only that may be read. It
// follows no redirect: the request, with the credentials, would go elsewhere.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	onlyMetadata, err := t.checkRequest(r)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	if onlyMetadata {
		forms := metadataForms(r)
		r = r.Clone(r.Context())
		r.Header.Set("Accept", strings.Join(forms, ","))
	}
	answer, err := t.next.RoundTrip(r)
	if err == nil && answer.Header.Get("Location") != "" && answer.StatusCode/100 == 3 {
		_ = answer.Body.Close()
		return nil, &RefusedError{"follow the redirect of", r.Method, r.URL.Path,
			"the new address may belong to another server"}
	}
	return answer, err
}

// resolver reads a path as the API server does.
var resolver = request.RequestInfoFactory{
	APIPrefixes: map[string]sets.Empty{"api": {}, "apis": {}}, GrouplessAPIPrefixes: map[string]sets.Empty{"api": {}},
}

// RefusedError is a request that was not sent, or whose redirect was not followed. Deed is "send" or "follow the
// redirect of".
type RefusedError struct{ Deed, Method, Path, Why string }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("kubectl warren ui does not %s %s %s: %s", e.Deed, e.Method, e.Path, e.Why)
}

// checkRequest returns an error for a request that must not be sent. onlyMetadata reports whether the answer must hold
// nothing but metadata.
func (t *Transport) checkRequest(r *http.Request) (onlyMetadata bool, err error) {
	path, within := strings.CutPrefix(r.URL.Path, t.prefix)
	info, err := resolver.NewRequestInfo(&http.Request{Method: r.Method,
		URL: &url.URL{Path: path, RawQuery: r.URL.RawQuery}})
	if err == nil && !within {
		err = errors.New("its path is not below that of the API server's address: please report this defect")
	}
	if err != nil {
		return false, &RefusedError{"send", r.Method, r.URL.Path, err.Error()}
	}
	refused := func(why string) (bool, error) { return false, &RefusedError{"send", r.Method, r.URL.Path, why} }
	switch {
	case r.Header.Get("Upgrade") != "":
		return refused("it changes the protocol")
	case isConfirmed(r):
		return false, nil
	case isRead(r, info) && isReadWhole(info):
		return false, nil
	case isRead(r, info) && len(metadataForms(r)) == 0:
		return refused("it reads " + info.Resource + " whole, but the page shows only their metadata")
	case isRead(r, info):
		return true, nil
	case info.IsResourceRequest && info.Verb == "create" && isReview(info):
		return false, nil
	case info.IsResourceRequest && slices.Equal(r.URL.Query()["dryRun"], []string{"All"}):
		return false, nil
	}
	return refused("it changes something that nobody has confirmed")
}

func isRead(r *http.Request, info *request.RequestInfo) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && info.Subresource == "" &&
		(!info.IsResourceRequest || slices.Contains([]string{"get", "list", "watch"}, info.Verb))
}

// wholeGroups are the API groups, and wholeCore the resources of the core group, whose objects may be read whole.
var (
	wholeGroups = []string{v1alpha1.GroupVersion.Group, "rbac.authorization.k8s.io", "events.k8s.io"}
	wholeCore   = []string{"events", "resourcequotas"}
)

// isReadWhole reports whether a request may read objects whole: those of the kinds above. Discovery, which reads no
// objects, counts too.
func isReadWhole(info *request.RequestInfo) bool {
	return !info.IsResourceRequest || slices.Contains(wholeGroups, info.APIGroup) ||
		info.APIGroup == "" && slices.Contains(wholeCore, info.Resource)
}

// metadataForms returns the media types of a request's header Accept by which the answer holds nothing but metadata.
// Clients also accept the whole object, for servers that know no other type.
func metadataForms(r *http.Request) []string {
	var forms []string
	for _, accepted := range r.Header.Values("Accept") {
		for form := range strings.SplitSeq(accepted, ",") {
			if strings.Contains(form, ";as=PartialObjectMetadata") {
				forms = append(forms, strings.TrimSpace(form))
			}
		}
	}
	return forms
}

// isReview reports whether the request creates a review, which asks a question. The API server stores no review.
func isReview(info *request.RequestInfo) bool {
	reviews := map[string][]string{
		"authentication.k8s.io": {"selfsubjectreviews"},
		"authorization.k8s.io":  {"selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews", "localsubjectaccessreviews"},
	}
	return info.Subresource == "" && slices.Contains(reviews[info.APIGroup], info.Resource)
}

// isConfirmed reports whether the request is, byte for byte, the change that its context confirms.
func isConfirmed(r *http.Request) bool {
	change, ok := r.Context().Value(changeKey{}).(Change)
	if !ok || r.Method != change.Method || r.URL.RequestURI() != change.URI {
		return false
	}
	if r.Body == nil {
		return len(change.Body) == 0
	}
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	r.Body = io.NopCloser(bytes.NewReader(body))
	return err == nil && bytes.Equal(body, change.Body)
}
