package copies

import (
	"maps"
	"strings"
)

// adapt drops from a source's content what belongs to it alone, kind by kind, and completes what would mean something
// else in another namespace.
func adapt(slot Slot, object map[string]any, labels, annotations map[string]string) {
	switch slot.Kind.String() {
	case "Service":
		adaptService(nested(object, "spec"))
	case "ServiceAccount":
		delete(object, "secrets")
	case "RoleBinding.rbac.authorization.k8s.io":
		adaptSubjects(slot.Namespace, object)
	case "PersistentVolumeClaim":
		delete(nested(object, "spec"), "volumeName")
		maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, "pv.kubernetes.io/") })
	case "Job.batch":
		adaptJob(object, labels)
	}
}

func nested(object map[string]any, path ...string) map[string]any {
	for _, key := range path {
		object, _ = object[key].(map[string]any)
	}
	return object
}

// adaptService drops the addresses that the API server gave the source.
func adaptService(spec map[string]any) {
	if spec["clusterIP"] != "None" {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	delete(spec, "healthCheckNodePort")
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		if p, ok := port.(map[string]any); ok {
			delete(p, "nodePort")
		}
	}
}

// adaptSubjects completes service accounts without a namespace: the API server reads them as those of the binding's own
// namespace, so a verbatim copy would give rights to a stranger.
func adaptSubjects(namespace string, object map[string]any) {
	subjects, _ := object["subjects"].([]any)
	for _, subject := range subjects {
		s, ok := subject.(map[string]any)
		if !ok || s["kind"] != "ServiceAccount" {
			continue
		}
		if ns, _ := s["namespace"].(string); ns == "" {
			s["namespace"] = namespace
		}
	}
}

// roleOf is the Role that a RoleBinding names, or "".
func roleOf(slot Slot, object map[string]any) string {
	if slot.Kind.String() != "RoleBinding.rbac.authorization.k8s.io" {
		return ""
	}
	ref := nested(object, "roleRef")
	if kind, _ := ref["kind"].(string); kind != "Role" {
		return ""
	}
	name, _ := ref["name"].(string)
	return name
}

// adaptJob drops the selector that the API server generated.
func adaptJob(object map[string]any, labels map[string]string) {
	spec := nested(object, "spec")
	if manual, _ := spec["manualSelector"].(bool); manual {
		return
	}
	delete(spec, "selector")
	template := nested(spec, "template", "metadata", "labels")
	for _, key := range []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"} {
		delete(labels, key)
		delete(template, key)
	}
}
