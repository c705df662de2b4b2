package exporter

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresources "k8s.io/component-helpers/resource"

	"github.com/warren-tenancy/warren/internal/billing"
)

// podReserves returns the resources that the scheduler reserves for a Pod on its node; gpus are the names of GPU resources. A Pod
// that waits for a node, or has succeeded or failed, reserves nothing.
func podReserves(pod *corev1.Pod, gpus []string) billing.Reserved {
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return billing.Reserved{}
	}
	requests := podresources.PodRequests(pod, podresources.PodResourcesOptions{UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true})
	reserved := billing.Reserved{MilliCPU: min(requests.Cpu().MilliValue(), mostMilliCPU), MemoryKiB: kibi(requests.Memory())}
	for name, quantity := range requests {
		if slices.Contains(gpus, string(name)) {
			reserved.GPUs = min(reserved.GPUs+min(quantity.Value(), mostGPUs), mostGPUs)
		}
	}
	return reserved
}

// claimReserves returns the storage that a bound PersistentVolumeClaim requests; nothing for a claim without a volume.
func claimReserves(claim *corev1.PersistentVolumeClaim) billing.Reserved {
	if claim.Status.Phase != corev1.ClaimBound {
		return billing.Reserved{}
	}
	return billing.Reserved{StorageKiB: kibi(claim.Spec.Resources.Requests.Storage())}
}

// The most that one Pod or claim counts for: a million cores, a PiB, 100,000 GPUs. A user can set a nodeName, and so request any
// amount without the scheduler; the sums of an hour must not overflow by that.
const (
	mostMilliCPU = 1e9
	mostBytes    = 1 << 50
	mostGPUs     = 1e5
)

// kibi rounds bytes up to KiB.
func kibi(q *resource.Quantity) int64 {
	bytes := min(q.Value(), mostBytes)
	kib := bytes / 1024
	if bytes%1024 > 0 {
		kib++
	}
	return kib
}

// slimPod keeps what podReserves reads, so that a first list of a large cluster fits into memory.
func slimPod(pod *corev1.Pod) {
	slim := corev1.Pod{}
	slim.Name, slim.Namespace, slim.UID, slim.ResourceVersion = pod.Name, pod.Namespace, pod.UID, pod.ResourceVersion
	slim.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName, Overhead: pod.Spec.Overhead, Resources: pod.Spec.Resources,
		Containers: slimContainers(pod.Spec.Containers), InitContainers: slimContainers(pod.Spec.InitContainers)}
	slim.Status = corev1.PodStatus{Phase: pod.Status.Phase, Resize: pod.Status.Resize, Resources: pod.Status.Resources,
		AllocatedResources: pod.Status.AllocatedResources, ContainerStatuses: slimStatuses(pod.Status.ContainerStatuses),
		InitContainerStatuses: slimStatuses(pod.Status.InitContainerStatuses)}
	for _, condition := range pod.Status.Conditions { // podReserves ignores a resize that these conditions call infeasible
		if strings.HasPrefix(string(condition.Type), "PodResize") {
			slim.Status.Conditions = append(slim.Status.Conditions, condition)
		}
	}
	*pod = slim
}

func slimContainers(containers []corev1.Container) []corev1.Container {
	slim := make([]corev1.Container, len(containers))
	for i := range containers {
		c := &containers[i]
		slim[i] = corev1.Container{Name: c.Name, Resources: corev1.ResourceRequirements{Requests: c.Resources.Requests}, RestartPolicy: c.RestartPolicy}
	}
	return slim
}

func slimStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	slim := make([]corev1.ContainerStatus, len(statuses))
	for i := range statuses {
		s := &statuses[i]
		slim[i] = corev1.ContainerStatus{Name: s.Name, Resources: s.Resources, AllocatedResources: s.AllocatedResources}
	}
	return slim
}
