package budget

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	resources "k8s.io/component-helpers/resource"
)

// NeedsOf returns what Kubernetes will count for an object that is created; or, where old is not empty, how much more it will count for one
// that changes. Both are JSON. Kubernetes counts more where a feature that is not stable adds to it: then the object is refused once, and
// the refusal tells what it needs.
func NeedsOf(of schema.GroupResource, object, old []byte) (Amounts, error) {
	needs, err := usageOf(of, object)
	if err != nil {
		return nil, err
	}
	if len(old) > 0 && !bytes.Equal(old, []byte("null")) {
		was, err := usageOf(of, old)
		if err != nil {
			return nil, err
		}
		for key, amount := range was {
			needs[key] -= amount
		}
	}
	// The API server has refused negative requests before, but the sender of a forged review has not.
	maps.DeleteFunc(needs, func(_ corev1.ResourceName, amount int64) bool { return amount <= 0 })
	return needs, nil
}

func usageOf(of schema.GroupResource, object []byte) (Amounts, error) {
	usage := corev1.ResourceList{corev1.ResourceName("count/" + of.String()): one()}
	switch of {
	case schema.GroupResource{Resource: "pods"}:
		return decodeUsage(object, usage, addPod)
	case schema.GroupResource{Resource: "persistentvolumeclaims"}:
		return decodeUsage(object, usage, addClaim)
	case schema.GroupResource{Resource: "services"}:
		return decodeUsage(object, usage, addService)
	case schema.GroupResource{Resource: "configmaps"}, schema.GroupResource{Resource: "replicationcontrollers"}:
		usage[corev1.ResourceName(of.Resource)] = one()
	}
	return AmountsOf(usage), nil
}

func one() resource.Quantity { return *resource.NewQuantity(1, resource.DecimalSI) }

// mostEntries bounds what an object that is decoded may have of entries of lists and maps: an entry of three bytes becomes 450 bytes in
// memory. The largest pods have some hundreds.
const mostEntries = 10_000

var errUnreadable = errors.New("an object of which a budget counts the use has more entries than are read, or an exponent of more " +
	"than two digits")

func decodeUsage[O any](text []byte, usage corev1.ResourceList, add func(corev1.ResourceList, *O)) (Amounts, error) {
	if bytes.Count(text, []byte(",")) > mostEntries || HasLongExponent(text) {
		return nil, errUnreadable
	}
	object := new(O)
	if err := json.Unmarshal(text, object); err != nil {
		return nil, fmt.Errorf("reading an object of which a budget counts the use: %w", err)
	}
	add(usage, object)
	return AmountsOf(usage), nil
}

func addPod(usage corev1.ResourceList, pod *corev1.Pod) {
	usage["pods"] = one()
	for key, quantity := range resources.PodRequests(pod, resources.PodResourcesOptions{UseStatusResources: true}) {
		usage["requests."+key] = quantity
		if isNative := !strings.Contains(string(key), "/"); isNative {
			usage[key] = quantity
		}
	}
	for key, quantity := range resources.PodLimits(pod, resources.PodResourcesOptions{UseStatusResources: true}) {
		usage["limits."+key] = quantity
	}
}

func addClaim(usage corev1.ResourceList, claim *corev1.PersistentVolumeClaim) {
	class := claim.Annotations[corev1.BetaStorageClassAnnotation]
	if claim.Spec.StorageClassName != nil && class == "" {
		class = *claim.Spec.StorageClassName
	}
	storage := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	usage["persistentvolumeclaims"], usage["requests.storage"] = one(), storage
	if prefix := corev1.ResourceName(class + ".storageclass.storage.k8s.io/"); class != "" {
		usage[prefix+"persistentvolumeclaims"], usage[prefix+"requests.storage"] = one(), storage
	}
}

func addService(usage corev1.ResourceList, service *corev1.Service) {
	ports := int64(len(service.Spec.Ports))
	usage["services"] = one()
	switch service.Spec.Type {
	case corev1.ServiceTypeLoadBalancer:
		usage["services.loadbalancers"] = one()
		if allocates := service.Spec.AllocateLoadBalancerNodePorts; allocates == nil || *allocates {
			usage["services.nodeports"] = *resource.NewQuantity(ports, resource.DecimalSI)
		}
	case corev1.ServiceTypeNodePort:
		usage["services.nodeports"] = *resource.NewQuantity(ports, resource.DecimalSI)
	}
}
