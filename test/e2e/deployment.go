//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

const (
	operatorNamespace = "warren-system"
	deployment        = "warren-controller-manager"
	replicas          = 2
)

// deploy deploys a version as a cluster admin would, from its own sources.
func (r *run) deploy(ctx context.Context, v version) error {
	if err := r.runMake(ctx, v, "deploy", "IMG="+v.image, "OVERLAY="+overlay); err != nil {
		return err
	}
	r.printSeen("make deploy IMG=%s OVERLAY=%s", v.image, overlay)
	return r.checkDeployed(ctx)
}

// rollOut is how long a roll-out may take: an upgrade has each of two new pods wait for half a minute, and old pods need time to end.
const rollOut = 4 * time.Minute

// checkDeployed waits until two replicas are Ready, under the strictest pod security profile.
func (r *run) checkDeployed(ctx context.Context) error {
	if err := r.waitUntil(ctx, rollOut, "two replicas", r.replicasReady); err != nil {
		return err
	}
	leader, err := r.leaderPod(ctx)
	if err != nil {
		return err
	}
	var namespace corev1.Namespace
	if err := r.world.Admin().Get(ctx, client.ObjectKey{Name: operatorNamespace}, &namespace); err != nil {
		return err
	}
	profile := namespace.Labels["pod-security.kubernetes.io/enforce"]
	if profile != "restricted" {
		return fmt.Errorf("namespace %s enforces the pod security profile %q: must be restricted", operatorNamespace, profile)
	}
	r.printSeen("%d replicas are Ready under the profile %s; %s leads", replicas, profile, leader)
	return nil
}

// runMake runs a target of a version's Makefile on the node, as a cluster admin would.
func (r *run) runMake(ctx context.Context, v version, args ...string) error {
	cmd := exec.CommandContext(ctx, "make", args...)
	cmd.Dir = v.dir
	cmd.Env = append(os.Environ(),
		"KUBECONFIG="+r.world.Kubeconfig(controlplane.Admin), "KUBECTL="+r.world.KubectlPath,
		"KUBECACHEDIR="+filepath.Join(r.dir, "kubectl"), "KUBERC=off")
	if answer, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make %s: %w:\n%s", strings.Join(args, " "), err, strings.TrimSpace(string(answer)))
	}
	return nil
}

func (r *run) replicasReady(ctx context.Context) error {
	var d appsv1.Deployment
	if err := r.world.Admin().Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: deployment}, &d); err != nil {
		return err
	}
	if s := d.Status; s.ObservedGeneration != d.Generation || s.Replicas != replicas || s.ReadyReplicas != replicas ||
		s.UpdatedReplicas != replicas {
		return fmt.Errorf("%d of %d replicas are Ready, %d updated: %s", s.ReadyReplicas, s.Replicas, s.UpdatedReplicas, r.podProblems(ctx))
	}
	// That replicas are Ready does not mean that one of them leads: for that, one must have the Lease. Pods of the version before may lead
	// until they end.
	pods, err := r.pods(ctx)
	if err == nil && len(pods) != replicas {
		err = fmt.Errorf("%d pods are there, some of which are ending", len(pods))
	}
	if err == nil {
		_, err = r.leaderPod(ctx)
	}
	return err
}

// podProblems returns what the pods wait for, or why they ended.
func (r *run) podProblems(ctx context.Context) string {
	pods, err := r.pods(ctx)
	if err != nil {
		return err.Error()
	}
	var states []string
	for _, pod := range pods {
		for _, c := range pod.Status.ContainerStatuses {
			switch {
			case c.State.Waiting != nil:
				states = append(states, pod.Name+" waits: "+c.State.Waiting.Reason+" "+c.State.Waiting.Message)
			case c.State.Terminated != nil:
				states = append(states, pod.Name+" ended: "+c.State.Terminated.Reason+" "+c.State.Terminated.Message)
			}
		}
	}
	return strings.Join(states, "; ")
}

func (r *run) pods(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	ours := client.MatchingLabels{"app.kubernetes.io/component": "manager"}
	err := r.world.Admin().List(ctx, &list, client.InNamespace(operatorNamespace), ours)
	return list.Items, err
}

// collectorKnowsUs waits until the garbage collector knows our kinds, which it looks for every 30 s. Until then it deletes nothing that a
// deleted tenant owned, and the demo would have to wait for it. The collector knows them when it deletes an object whose owner never
// existed.
func (r *run) collectorKnowsUs(ctx context.Context) error {
	orphan := build.ConfigMap("default", "orphan", "")
	orphan.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "LNamespace", Name: "nobody", UID: "nobody",
	}}
	if err := r.world.Admin().Create(ctx, orphan); err != nil {
		return fmt.Errorf("asking the garbage collector: %w", err)
	}
	err := r.waitUntil(ctx, 2*soon, "the garbage collector learns our kinds", func(ctx context.Context) error {
		err := r.world.Admin().Get(ctx, client.ObjectKeyFromObject(orphan), orphan)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("an object whose owner doesn't exist is still there"))
	})
	if err == nil {
		r.printSeen("the garbage collector knows our kinds")
	}
	return err
}
