package exporter_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// standIn is a fake API server for the requests of the exporter only: lists, which it streams or answers in pages, watches without further
// events, and writes. Each namespace is the root of a tenant whose status says that all is exported, as after a restart of the exporter.
type standIn struct {
	namespaces int

	mu    sync.Mutex // guards lease
	lease *coordinationv1.Lease
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	at, query := r.URL.Path, r.URL.Query()
	switch {
	case r.Method != http.MethodGet:
		s.write(w, r)
	case query.Get("watch") == "true" || query.Get("watch") == "1":
		if query.Get("sendInitialEvents") == "true" {
			s.stream(w, at)
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case strings.Contains(at, "/leases/"):
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.lease == nil {
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(s.lease)
	default:
		_ = json.NewEncoder(w).Encode(s.read(at, query.Get("limit"), query.Get("continue")))
	}
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: reason,
		Code: int32(code)})
}

// write answers a write with those fields of the object that the exporter reads.
func (s *standIn) write(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	meta := metav1.ObjectMeta{Name: path.Base(strings.TrimSuffix(r.URL.Path, "/status")), Namespace: "warren-system", UID: "1",
		ResourceVersion: "2"}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case strings.Contains(r.URL.Path, "/events"):
		_ = json.NewEncoder(w).Encode(&corev1.Event{TypeMeta: metav1.TypeMeta{Kind: "Event", APIVersion: "v1"}, ObjectMeta: meta})
	case strings.Contains(r.URL.Path, "/leases"):
		object, _, err := clientscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.lease = object.(*coordinationv1.Lease)
		s.lease.TypeMeta, s.lease.ResourceVersion = metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}, "2"
		_ = json.NewEncoder(w).Encode(s.lease)
	default:
		_ = json.NewEncoder(w).Encode(&v1alpha1.LNamespace{TypeMeta: lnamespaceType, ObjectMeta: meta})
	}
}

// stream writes a list as the first events of a watch.
func (s *standIn) stream(w io.Writer, at string) {
	list := s.read(at, "", "").(map[string]any)
	objects, events := list["items"].([]any), json.NewEncoder(w)
	for _, object := range objects {
		_ = events.Encode(metav1.WatchEvent{Type: string(watch.Added), Object: raw(object)})
	}
	end := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}}
	if strings.HasSuffix(at, "/lnamespaces") {
		end.TypeMeta = lnamespaceType
	}
	end.ResourceVersion, end.Annotations = "1", map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	_ = events.Encode(metav1.WatchEvent{Type: string(watch.Bookmark), Object: raw(end)})
}

func raw(object any) runtime.RawExtension {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return runtime.RawExtension{Raw: text}
}

var lnamespaceType = metav1.TypeMeta{Kind: "LNamespace", APIVersion: v1alpha1.GroupVersion.String()}

func tenantName(i int) string { return fmt.Sprintf("tenant-%05d", i) }

// read returns discovery, or a page of a list.
func (s *standIn) read(at, limit, from string) any {
	version := metav1.GroupVersionForDiscovery{GroupVersion: v1alpha1.GroupVersion.String(), Version: "v1alpha1"}
	switch at {
	case "/api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case "/apis":
		return metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{
			{Name: v1alpha1.Domain, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}}}
	case "/api/v1":
		return resources("v1", metav1.APIResource{Name: "namespaces", Kind: "Namespace"},
			metav1.APIResource{Name: "events", Kind: "Event", Namespaced: true})
	case "/apis/" + version.GroupVersion:
		return resources(version.GroupVersion, metav1.APIResource{Name: "lnamespaces", Kind: "LNamespace"})
	case "/api/v1/namespaces":
		return page("PartialObjectMetadataList", "meta.k8s.io/v1", s.namespaces, limit, from, func(i int) any {
			m := metadata(i)
			m.Labels = map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot, v1alpha1.TreeLabel(m.Name): "0", corev1.LabelMetadataName: m.Name}
			m.Annotations = map[string]string{v1alpha1.AnnotationAncestry: m.Name, v1alpha1.AnnotationLNamespaceUID: string(m.UID)}
			return metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"},
				ObjectMeta: m}
		})
	case "/apis/" + version.GroupVersion + "/lnamespaces":
		return page("LNamespaceList", version.GroupVersion, s.namespaces, limit, from, func(i int) any {
			return v1alpha1.LNamespace{TypeMeta: lnamespaceType, ObjectMeta: metadata(i),
				Spec: v1alpha1.LNamespaceSpec{Billing: &v1alpha1.Billing{CostCenter: strconv.Itoa(4000 + i%1000),
					Owner: fmt.Sprintf("ann.%d@example.com", i%1000), Labels: map[string]string{"product": fmt.Sprintf("checkout-%d", i%500)}}},
				Status: v1alpha1.LNamespaceStatus{Conditions: []metav1.Condition{{Type: string(v1alpha1.ConditionBillingExported),
					Status: metav1.ConditionTrue, ObservedGeneration: 1,
					LastTransitionTime: metav1.Now(), Reason: string(v1alpha1.ReasonExported),
					Message: "the ledger has all known changes of this tenant"}}}}
		})
	}
	panic("the exporter reads " + at)
}

// page returns at most limit objects of a list of all objects, from number from on.
func page(kind, version string, all int, limit, from string, object func(i int) any) any {
	begin, _ := strconv.Atoi(from)
	size, _ := strconv.Atoi(limit)
	end, meta := all, metav1.ListMeta{ResourceVersion: "1"}
	if size > 0 && begin+size < all {
		end = begin + size
		meta.Continue = strconv.Itoa(end)
	}
	items := make([]any, 0, end-begin)
	for i := begin; i < end; i++ {
		items = append(items, object(i))
	}
	return map[string]any{"kind": kind, "apiVersion": version, "metadata": meta, "items": items}
}

func resources(version string, all ...metav1.APIResource) metav1.APIResourceList {
	for i := range all {
		all[i].Verbs = metav1.Verbs{"list", "watch", "get", "patch", "create", "update"}
	}
	return metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: version, APIResources: all}
}

// metadata returns the metadata of object i, as large as a real object's: most of it is managed fields.
func metadata(i int) metav1.ObjectMeta {
	made := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	fields :=
		`{"f:metadata":{"f:annotations":{".":{},"f:tenancy.warren.dev/ancestry":{},"f:tenancy.warren.dev/lnamespace-uid":{}},` +
			`"f:labels":{".":{},"f:tenancy.warren.dev/type":{}}}}`
	return metav1.ObjectMeta{Name: tenantName(i), UID: types.UID(fmt.Sprintf("0d21e2c4-0000-4000-8000-%012d", i)), ResourceVersion: "1",
		CreationTimestamp: made, Generation: 1, ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "warren", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", Time: &made, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(fields)},
			{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &made, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(fields)}}}
}
