package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Server is the API server.
type Server struct {
	// Admit is asked before an object is created or changed, and may refuse; nil admits all.
	Admit func(object *Record, old *Record, dryRun bool) *Refusal

	kinds     []*Kind
	discovery map[string][]byte
	revision  int64
	uids      int
	observers []func(Event)
	continued map[string][]*Record // the rest of each list that was answered in part
	ahead     time.Duration        // how far its clock is ahead of the operator's
}

// Now returns the time by the clock of the API server and of the controllers of Kubernetes.
func (s *Server) Now() time.Time { return time.Now().Add(s.ahead) }

// Advance sets that clock forward, or back if d is negative.
func (s *Server) Advance(d time.Duration) { s.ahead += d }

// Request is a request to the API server.
type Request struct {
	Method, Path        string
	Query               url.Values
	Body                []byte
	ContentType, Accept string
	User, Agent         string
}

// Response is its answer. A Watch goes on for as long as nobody ends it.
type Response struct {
	Code  int
	Body  []byte
	Watch *Watch
}

// NewServer returns a Server that serves the built-in kinds and has the objects, whose CRDs it serves, too.
func NewServer(objects []*unstructured.Unstructured) *Server {
	s := &Server{kinds: builtinKinds(), continued: map[string][]*Record{}, revision: 100}
	for _, u := range objects {
		if u.GetKind() == "CustomResourceDefinition" {
			s.kinds = append(s.kinds, customKind(u))
		}
	}
	s.buildDiscovery()
	s.addBuiltinRoles()
	for _, name := range []string{"default", "kube-system"} {
		ns := &unstructured.Unstructured{}
		ns.SetAPIVersion("v1")
		ns.SetKind("Namespace")
		ns.SetName(name)
		s.install(ns)
	}
	for _, pass := range []bool{true, false} { // namespaces first
		for _, u := range objects {
			if (u.GetKind() == "Namespace") == pass {
				s.install(u)
			}
		}
	}
	s.aggregateRoles()
	return s
}

// Admin is a user who may do everything.
const Admin = "system:admin"

func (s *Server) install(u *unstructured.Unstructured) {
	for _, k := range s.kinds {
		if k.GroupVersionKind == u.GroupVersionKind() {
			if _, refusal := s.create(k, u.GetNamespace(), u.DeepCopy(), options{user: Admin, manager: "kubectl"}); refusal != nil {
				panic(fmt.Sprintf("installing %s %s: %v", u.GetKind(), u.GetName(), refusal))
			}
			return
		}
	}
}

// route is what the path of a request names.
type route struct {
	kind                   *Kind
	review                 string
	namespace, name, child string
}

// findRoute returns what a path names.
func (s *Server) findRoute(path string) (route, *Refusal) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	group := ""
	switch {
	case parts[0] == "api" && len(parts) > 2 && parts[1] == "v1":
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		group, parts = parts[1], parts[3:]
	default:
		panic(fmt.Sprintf("the model does not serve the path %s", path))
	}
	r := route{}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		r.namespace, parts = parts[1], parts[2:]
	}
	if strings.HasSuffix(parts[0], "reviews") {
		r.review = parts[0]
		return r, nil
	}
	for _, k := range s.kinds {
		if k.Has(group, parts[0]) {
			r.kind = k
		}
	}
	if r.kind == nil {
		return r, notFound(unknownResource(group, parts[0]), "")
	}
	if len(parts) > 1 {
		r.name = parts[1]
	}
	if len(parts) > 2 {
		r.child = parts[2]
	}
	return r, nil
}

// Do carries out a request.
func (s *Server) Do(r Request) Response {
	if answer, isDiscovery := s.Discover(r.Path); isDiscovery {
		return answer
	}
	to, refusal := s.findRoute(r.Path)
	if refusal != nil {
		return refusal.response()
	}
	if to.review != "" {
		return s.review(to, r)
	}
	verb := verbOf(to, r)
	if !s.Allowed(r.User, Attributes{Verb: verb, Group: to.kind.Group, Resource: to.kind.Resource, Child: to.child,
		Namespace: to.namespace, Name: to.name}) {
		return forbidden(to.kind.GroupResource(), to.name, fmt.Sprintf("User %q cannot %s resource %q in namespace %q", r.User, verb,
			to.kind.Resource+slash(to.child), to.namespace)).response()
	}
	object, refusal := (*Record)(nil), (*Refusal)(nil)
	code := http.StatusOK
	switch verb {
	case "list":
		return s.list(to, r)
	case "watch":
		return s.watch(to, r)
	case "get":
		if object = to.kind.Find(to.namespace, to.name); object == nil {
			refusal = notFound(to.kind.GroupResource(), to.name)
		}
	case "create":
		code = http.StatusCreated
		object, refusal = s.create(to.kind, to.namespace, decodeObject(r.Body), optionsOf(r))
	case "update", "patch":
		object, refusal = s.change(to, r, optionsOf(r))
	case "delete":
		return s.deleteOne(to, r)
	case "deletecollection":
		return s.deleteCollection(to, r)
	}
	if refusal != nil {
		return refusal.response()
	}
	return Response{Code: code, Body: object.encode(strings.Contains(r.Accept, "as=PartialObjectMetadata"))}
}

func slash(child string) string {
	if child == "" {
		return ""
	}
	return "/" + child
}

func verbOf(to route, r Request) string {
	switch r.Method {
	case http.MethodGet:
		switch {
		case r.Query.Get("watch") == "true" || r.Query.Get("watch") == "1":
			return "watch"
		case to.name == "":
			return "list"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if to.name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	panic("the model does not serve the method " + r.Method)
}

// options are those of a write.
type options struct {
	user, manager string
	dryRun        bool
}

func optionsOf(r Request) options {
	o := options{user: r.User, manager: r.Query.Get("fieldManager"), dryRun: r.Query.Get("dryRun") == "All"}
	if o.manager == "" {
		o.manager, _, _ = strings.Cut(r.Agent, "/")
	}
	return o
}

func decodeObject(body []byte) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(body); err != nil {
		panic(fmt.Sprintf("the model reads JSON alone: %v: %.200q", err, body))
	}
	return u
}

func decodeInto(body []byte, into any) {
	if err := json.Unmarshal(body, into); err != nil {
		panic(fmt.Sprintf("the model reads JSON alone: %v: %.200q", err, body))
	}
}
