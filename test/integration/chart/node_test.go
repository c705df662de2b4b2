package chart_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// startNode runs the pods of hooks, as a kubelet would: it starts the container's command as a process, with the token of the pod's
// ServiceAccount, and reports how it ended. The operator's own pods stay pending.
func (s site) startNode() {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	DeferCleanup(func() { stop(); <-ended })
	go func() {
		defer close(ended)
		defer GinkgoRecover()
		for ctx.Err() == nil {
			pods := &corev1.PodList{}
			if s.Admin().List(ctx, pods, client.InNamespace("warren-system")) == nil {
				for i := range pods.Items {
					if pod := &pods.Items[i]; pod.Status.Phase == corev1.PodPending && pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
						s.runPod(ctx, pod)
					}
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
}

func (s site) runPod(ctx context.Context, pod *corev1.Pod) {
	command := pod.Spec.Containers[0].Command
	cmd := exec.CommandContext(ctx, filepath.Join(bin, command[0]), command[1:]...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfigOf(ctx, pod), "HOME="+s.Dir)
	answer, err := cmd.CombinedOutput()
	GinkgoWriter.Printf("pod %s: %v\n%s\n", pod.Name, err, answer)
	pod.Status.Phase = corev1.PodSucceeded
	if err != nil {
		pod.Status.Phase = corev1.PodFailed
		pod.Status.Message = string(answer)
	}
	err = s.Admin().Status().Update(ctx, pod)
	Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
}

// kubeconfigOf writes a kubeconfig with a token of the pod's ServiceAccount.
func (s site) kubeconfigOf(ctx context.Context, pod *corev1.Pod) string {
	token := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = pod.Namespace, pod.Spec.ServiceAccountName
	Expect(s.Admin().SubResource("token").Create(ctx, account, token)).To(Succeed())
	config, err := clientcmd.LoadFromFile(s.Kubeconfig(controlplane.Admin))
	Expect(err).NotTo(HaveOccurred())
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	path := filepath.Join(s.Dir, pod.Name+".kubeconfig")
	Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	return path
}
