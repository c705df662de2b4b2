package doctor

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// checkAPIServices names the APIServices that don't answer. While one doesn't, the list of the cluster's kinds is
// incomplete, so no namespace can be emptied and deleted.
func (p Patient) checkAPIServices(ctx context.Context) Check {
	const name = "apiservices"
	services := &unstructured.UnstructuredList{}
	services.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1",
		Kind: "APIServiceList"})
	if err := p.Copies.List(ctx, services); err != nil {
		return warnOf(name, "it is not known whether all APIServices answer: "+firstLine(err.Error()), stepAfter(err))
	}
	var silent, names []string
	for _, service := range services.Items {
		if reason := whyUnavailable(service); reason != "" {
			silent, names = append(silent, service.GetName()+" ("+reason+")"), append(names, service.GetName())
		}
	}
	if len(silent) == 0 {
		return passOf(name, fmt.Sprintf("all %d answer", len(services.Items)))
	}
	return warnOf(name, "no answer from "+strings.Join(silent, ", ")+": until all answer, no namespace of the cluster can be deleted",
		"repair the Service of each of them (kubectl get apiservice shows it); or, if no program needs the API any more, run kubectl delete "+
			"apiservice "+strings.Join(names, " "))
}

// whyUnavailable returns why an APIService doesn't answer; "" if it answers, or if that isn't known yet.
func whyUnavailable(service unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(service.Object, "status", "conditions")
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		if condition["type"] == "Available" && condition["status"] == "False" {
			reason, _ := condition["reason"].(string)
			return cmp.Or(reason, "Available=False")
		}
	}
	return ""
}
