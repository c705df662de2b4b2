package api

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// Kind is a kind that the Server serves, with all its objects and all that ever happened to them.
type Kind struct {
	schema.GroupVersionKind
	Resource   string
	Namespaced bool
	// hasStatus is whether the status is a subresource; counts is whether generation follows the spec.
	hasStatus, counts bool
	definition        *definition // nil: a built-in kind
	managers          map[string]*managedfields.FieldManager

	objects map[string]*Record // by namespace/name
	log     []Event
	// compacted is the revision before which the log can't be read any more.
	compacted int64
}

// GroupResource returns the kind's name in messages of the API server.
func (k *Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// Has reports whether the kind is this one.
func (k *Kind) Has(group, resource string) bool { return k.Group == group && k.Resource == resource }

// builtin are the built-in kinds: group/version, kind, resource, and what distinguishes it.
var builtin = []struct{ groupVersion, kind, resource, traits string }{
	{"v1", "Namespace", "namespaces", "cluster status"},
	{"v1", "Secret", "secrets", ""},
	{"v1", "ConfigMap", "configmaps", ""},
	{"v1", "Event", "events", ""},
	{"v1", "Pod", "pods", "status"},
	{"v1", "Service", "services", "status"},
	{"v1", "ServiceAccount", "serviceaccounts", ""},
	{"v1", "ResourceQuota", "resourcequotas", "status"},
	{"v1", "LimitRange", "limitranges", ""},
	{"v1", "PersistentVolumeClaim", "persistentvolumeclaims", "status"},
	{"apps/v1", "Deployment", "deployments", "status counts"},
	{"batch/v1", "Job", "jobs", "status counts"},
	{"networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", "counts"},
	{"rbac.authorization.k8s.io/v1", "Role", "roles", ""},
	{"rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", ""},
	{"rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", "cluster"},
	{"rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", "cluster"},
	{"coordination.k8s.io/v1", "Lease", "leases", ""},
	{"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", "cluster status counts"},
	{"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", "cluster counts"},
	{"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "cluster counts"},
	{"admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "cluster counts"},
	{"apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", "cluster status counts"},
}

func builtinKinds() []*Kind {
	var kinds []*Kind
	for _, b := range builtin {
		gv, err := schema.ParseGroupVersion(b.groupVersion)
		if err != nil {
			panic(err) // the table is fixed at build time
		}
		kinds = append(kinds, newKind(gv.WithKind(b.kind), b.resource, b.traits))
	}
	return kinds
}

func newKind(gvk schema.GroupVersionKind, resource, traits string) *Kind {
	return &Kind{
		GroupVersionKind: gvk, Resource: resource, Namespaced: !strings.Contains(traits, "cluster"),
		hasStatus: strings.Contains(traits, "status"), counts: strings.Contains(traits, "counts"),
		objects: map[string]*Record{}, managers: map[string]*managedfields.FieldManager{},
	}
}

var allVerbs = metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// reviews are the kinds that only answer questions.
var reviews = map[string][]metav1.APIResource{
	"authorization.k8s.io/v1": {
		{Name: "subjectaccessreviews", Kind: "SubjectAccessReview", Verbs: metav1.Verbs{"create"}},
		{Name: "selfsubjectaccessreviews", Kind: "SelfSubjectAccessReview", Verbs: metav1.Verbs{"create"}},
		{Name: "selfsubjectrulesreviews", Kind: "SelfSubjectRulesReview", Verbs: metav1.Verbs{"create"}},
	},
	"authentication.k8s.io/v1": {
		{Name: "selfsubjectreviews", Kind: "SelfSubjectReview", Verbs: metav1.Verbs{"create"}},
		{Name: "tokenreviews", Kind: "TokenReview", Verbs: metav1.Verbs{"create"}},
	},
}

// Discover answers a request for what the Server serves; false for any other request. It may be called at any time.
func (s *Server) Discover(path string) (Response, bool) {
	path = strings.TrimSuffix(path, "/")
	body, found := s.discovery[path]
	switch {
	case found:
		return Response{Code: 200, Body: body}, true
	case path == "/api" || path == "/apis" || strings.HasPrefix(path, "/apis/") && strings.Count(path, "/") <= 3:
		return notFound(schema.GroupResource{}, path).response(), true
	}
	return Response{}, false
}

func (s *Server) buildDiscovery() {
	s.discovery = map[string][]byte{}
	put := func(path string, object any) {
		body, err := json.Marshal(object)
		if err != nil {
			panic(err)
		}
		s.discovery[path] = body
	}
	put("/version", map[string]string{"major": "1", "minor": "36", "gitVersion": "v1.36.3"})
	put("/api", metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	lists := map[string][]metav1.APIResource{}
	for gv, resources := range reviews {
		lists[gv] = append(lists[gv], resources...)
	}
	for _, k := range s.kinds {
		gv := k.GroupVersion().String()
		lists[gv] = append(lists[gv], metav1.APIResource{Name: k.Resource, SingularName: strings.ToLower(k.Kind), Kind: k.Kind,
			Namespaced: k.Namespaced, Verbs: allVerbs})
		if k.hasStatus {
			lists[gv] = append(lists[gv], metav1.APIResource{Name: k.Resource + "/status", Kind: k.Kind, Namespaced: k.Namespaced,
				Verbs: metav1.Verbs{"get", "patch", "update"}})
		}
	}
	groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for gv, resources := range lists {
		list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv,
			APIResources: resources}
		name, version, hasGroup := strings.Cut(gv, "/")
		if !hasGroup {
			put("/api/"+gv, list)
			continue
		}
		put("/apis/"+gv, list)
		only := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: version}
		group := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: name,
			Versions: []metav1.GroupVersionForDiscovery{only}, PreferredVersion: only}
		put("/apis/"+name, group)
		groups.Groups = append(groups.Groups, group)
	}
	slices.SortFunc(groups.Groups, func(a, b metav1.APIGroup) int { return strings.Compare(a.Name, b.Name) })
	put("/apis", groups)
}
