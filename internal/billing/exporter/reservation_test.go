package exporter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/warren-tenancy/warren/internal/billing"
)

func requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}
}

func podOf(change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "app", Resources: requests("500m", "1Gi")},
		{Name: "side", Resources: requests("100m", "1Mi")}}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	change(pod)
	return pod
}

func TestReservations(t *testing.T) {
	const gib = 1 << 20
	always := corev1.ContainerRestartPolicyAlways
	gpus := []string{"nvidia.com/gpu", "amd.com/gpu"}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   billing.Reserved
	}{
		"containers add up":           {func(*corev1.Pod) {}, billing.Reserved{MilliCPU: 600, MemoryKiB: gib + 1024}},
		"a Pod that waits for a node": {func(p *corev1.Pod) { p.Spec.NodeName = "" }, billing.Reserved{}},
		"a Pod that is being pulled":  {func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, billing.Reserved{MilliCPU: 600, MemoryKiB: gib + 1024}},
		"a Pod that has succeeded":    {func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, billing.Reserved{}},
		"a Pod that has failed":       {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, billing.Reserved{}},
		"a Pod that is being deleted": {func(p *corev1.Pod) { p.DeletionTimestamp = &p.CreationTimestamp }, billing.Reserved{MilliCPU: 600, MemoryKiB: gib + 1024}},
		"a Pod of which nobody knows": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodUnknown }, billing.Reserved{MilliCPU: 600, MemoryKiB: gib + 1024}},
		"nothing requested":           {func(p *corev1.Pod) { p.Spec.Containers = []corev1.Container{{Name: "app"}} }, billing.Reserved{}},
		"a larger init container": {func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init", Resources: requests("2", "1Mi")}}
		}, billing.Reserved{MilliCPU: 2000, MemoryKiB: gib + 1024}},
		"a sidecar counts all the time": {func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init", RestartPolicy: &always, Resources: requests("50m", "1Mi")}}
		}, billing.Reserved{MilliCPU: 650, MemoryKiB: gib + 2048}},
		"overhead of the runtime class":  {func(p *corev1.Pod) { p.Spec.Overhead = requests("250m", "1Mi").Requests }, billing.Reserved{MilliCPU: 850, MemoryKiB: gib + 2048}},
		"requests of the Pod as a whole": {func(p *corev1.Pod) { r := requests("3", "2Gi"); p.Spec.Resources = &r }, billing.Reserved{MilliCPU: 3000, MemoryKiB: 2 * gib}},
		"a resize down that the node has not carried out": {func(p *corev1.Pod) {
			allocated := requests("1", "1Gi")
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", AllocatedResources: allocated.Requests, Resources: &allocated}}
		}, billing.Reserved{MilliCPU: 1100, MemoryKiB: gib + 1024}},
		"GPUs of two makers": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("2")
			p.Spec.Containers[1].Resources.Requests["amd.com/gpu"] = resource.MustParse("1")
			p.Spec.Containers[1].Resources.Requests["example.com/fpga"] = resource.MustParse("5")
		}, billing.Reserved{MilliCPU: 600, MemoryKiB: gib + 1024, GPUs: 3}},
	} {
		t.Run("BILL-58 "+name, func(t *testing.T) {
			whole := podOf(c.change)
			slim := whole.DeepCopy()
			slimPod(slim)
			for _, pod := range []*corev1.Pod{whole, slim} {
				if diff := cmp.Diff(c.want, podReserves(pod, gpus)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
	for phase, want := range map[corev1.PersistentVolumeClaimPhase]int64{corev1.ClaimBound: 1025, corev1.ClaimPending: 0, corev1.ClaimLost: 0} {
		t.Run("BILL-58 a claim that is "+string(phase), func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{Phase: phase}}
			claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1048577")}
			if got := claimReserves(claim); got != (billing.Reserved{StorageKiB: want}) {
				t.Errorf("%+v", got)
			}
		})
	}
}
