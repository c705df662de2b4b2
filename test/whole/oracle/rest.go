package oracle

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/warren-tenancy/warren/test/whole/api"
)

const domain = "tenancy.warren.dev"

// CheckGenerations finds objects of Warren whose status speaks of an older generation, in a cluster that has settled.
func CheckGenerations(server *api.Server) []Finding {
	var found []Finding
	for _, k := range server.Kinds() {
		if k.Group != domain {
			continue
		}
		for _, r := range k.All() {
			if observed, has, _ := unstructured.NestedInt64(r.Object, "status", "observedGeneration"); has && observed != r.GetGeneration() {
				found = append(found, findingOf(Generation, "%s %s/%s: status.observedGeneration is %d, the generation %d", k.Kind,
					r.GetNamespace(), r.GetName(), observed, r.GetGeneration()))
			}
			for _, c := range conditionsOf(r) {
				if observed, has := c["observedGeneration"].(int64); has && observed != r.GetGeneration() {
					found = append(found, findingOf(Generation, "%s %s/%s: condition %s has observedGeneration %d, the generation is %d", k.Kind,
						r.GetNamespace(), r.GetName(), c["type"], observed, r.GetGeneration()))
				}
			}
		}
	}
	return found
}

func conditionsOf(r *api.Record) []map[string]any {
	list, _, _ := unstructured.NestedSlice(r.Object, "status", "conditions")
	var conditions []map[string]any
	for _, each := range list {
		if c, isMap := each.(map[string]any); isMap {
			conditions = append(conditions, c)
		}
	}
	return conditions
}

// CheckPeople finds access bindings that name a user who is on none of the tenant's lists, in a cluster that has settled.
func CheckPeople(server *api.Server) []Finding {
	var found []Finding
	for _, resource := range []string{"rolebindings", "clusterrolebindings"} {
		for _, r := range server.Kind("rbac.authorization.k8s.io", resource).All() {
			tenant := r.GetLabels()[domain+"/tenant"]
			if access := r.GetLabels()[domain+"/access"]; tenant == "" || access == "" || access == "request" {
				continue // those of grants are judged by Requests
			}
			of := server.Kind(domain, "lnamespaces").Find("", tenant)
			if of == nil {
				found = append(found, findingOf(People, "%s %s/%s is there, but LNamespace %s is not", r.GetKind(), r.GetNamespace(),
					r.GetName(), tenant))
				continue
			}
			for _, user := range usersIn(r.Object, "subjects") {
				if !slices.Contains(listed(of), user) {
					found = append(found, findingOf(People, "%s %s/%s names user %s, who is on no list of LNamespace %s", r.GetKind(),
						r.GetNamespace(), r.GetName(), user, tenant))
				}
			}
		}
	}
	return found
}

// listed returns the users on the lists of an LNamespace.
func listed(tenant *api.Record) []string {
	var users []string
	for _, list := range []string{"users", "managers", "sudoers"} {
		users = append(users, usersIn(tenant.Object, "spec", list)...)
	}
	for _, list := range []string{"eligible", "approvers"} {
		users = append(users, usersIn(tenant.Object, "spec", "sudoRequests", list)...)
	}
	return users
}

// usersIn returns the names of the subjects of kind User in a list.
func usersIn(object map[string]any, path ...string) []string {
	list, _, _ := unstructured.NestedSlice(object, path...)
	var users []string
	for _, each := range list {
		if subject, isMap := each.(map[string]any); isMap && subject["kind"] == "User" {
			name, _ := subject["name"].(string)
			users = append(users, name)
		}
	}
	return users
}
