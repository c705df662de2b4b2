package watchset_test

import (
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// discover answers discovery for /api/VERSION and /apis/GROUP/VERSION and, without a version, for /api and /apis/GROUP.
func (a *api) discover(path []string) (int, any) {
	versions := a.versionsOf(path[min(len(path)-1, 1)])
	switch {
	case len(path) == 1:
		return http.StatusOK, &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: versions}
	case path[0] == "apis" && len(path) == 2:
		return a.group(path[1], versions)
	case !slices.Contains(versions, path[len(path)-1]):
		return http.StatusNotFound, failure(http.StatusNotFound, metav1.StatusReasonNotFound)
	}
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: strings.Join(path[1:], "/")}
	for _, name := range []string{"secrets", "configmaps", "widgets", "roles", "rolebindings", "clusterroles", "clusterrolebindings",
		"nodes"} {
		if !a.missing[name] {
			list.APIResources = append(list.APIResources,
				metav1.APIResource{Name: name + "/status", Kind: kindOf(name), Namespaced: name != "nodes"},
				metav1.APIResource{Name: name, Kind: kindOf(name), Namespaced: name != "nodes"})
		}
	}
	return http.StatusOK, list
}

func (a *api) versionsOf(group string) []string {
	if a.versions == nil || group != "example.com" {
		return []string{"v1"}
	}
	return a.versions
}

func (a *api) group(name string, versions []string) (int, any) {
	if a.missing["widgets"] {
		return http.StatusNotFound, failure(http.StatusNotFound, metav1.StatusReasonNotFound)
	}
	group := &metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: name}
	for _, version := range versions {
		group.PreferredVersion = metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + version, Version: version}
		group.Versions = append(group.Versions, group.PreferredVersion)
	}
	return http.StatusOK, group
}

func kindOf(resource string) string {
	return strings.ToUpper(resource[:1]) + strings.TrimSuffix(resource[1:], "s")
}
