//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/test/build"
)

// leaderPod returns the name of the pod that holds the Lease.
func (r *run) leaderPod(ctx context.Context) (string, error) {
	var lease coordinationv1.Lease
	if err := r.world.Admin().Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: "warren"}, &lease); err != nil {
		return "", err
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", errors.New("nobody holds the Lease")
	}
	pod, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return pod, nil
}

// The work that is under way when the leader dies: alice grows the demo's tenant, half of it under each of two leaders, and a Secret must
// reach all of it.
const (
	tenant     = "payments"
	children   = 16
	secretName = "handover"
)

// killLeader kills the leader as a crash would, in the middle of work, and lets another pod finish.
func (r *run) killLeader(ctx context.Context) error {
	alice := r.world.As("alice")
	leader, err := r.leaderPod(ctx)
	if err != nil {
		return err
	}
	secret := build.Source(build.Secret(tenant, secretName, "first"), "update")
	if err := alice.Create(ctx, secret); err != nil {
		return fmt.Errorf("alice creates a Secret: %w", err)
	}
	if err := r.growTree(ctx, 0, children/2); err != nil {
		return err
	}
	if err := r.waitUntil(ctx, soon, "the first copy", func(ctx context.Context) error { return r.checkCopies(ctx, 1, "first") }); err != nil {
		return err
	}
	if err := r.crashPod(ctx, leader); err != nil {
		return err
	}
	killed, reached := time.Now(), r.count(ctx, "first")
	r.printSeen("leader %s was killed when %d of %d copies were there", leader, reached, children)
	// What users do while no pod leads must not be lost.
	err = r.waitUntil(ctx, soon, "sub-namespaces while a replica is dead", func(ctx context.Context) error {
		return r.growTree(ctx, children/2, children)
	})
	if err != nil {
		return err
	}
	r.printSeen("alice had the other half of her sub-namespaces made %.1f s after the kill", time.Since(killed).Seconds())
	secret.Data = build.Secret(tenant, secretName, "second").Data
	if err := alice.Update(ctx, secret); err != nil {
		return fmt.Errorf("alice updates the Secret: %w", err)
	}
	return r.handedOver(ctx, leader, killed)
}

func (r *run) handedOver(ctx context.Context, old string, killed time.Time) error {
	var leader string
	err := r.waitUntil(ctx, 2*soon, "another leader", func(ctx context.Context) (err error) {
		if leader, err = r.leaderPod(ctx); err == nil && leader == old {
			err = fmt.Errorf("%s holds the Lease, though it is dead", old)
		}
		return err
	})
	if err != nil {
		return err
	}
	r.printSeen("%s leads, %.1f s after the kill", leader, time.Since(killed).Seconds())
	if err := r.waitUntil(ctx, soon, "all copies", func(ctx context.Context) error { return r.checkCopies(ctx, children, "second") }); err !=
		nil {
		return err
	}
	r.printSeen("it finished the work: %d sub-namespaces, each with its copy, %.1f s after the kill", children, time.Since(killed).Seconds())
	if err := r.waitUntil(ctx, soon, "two replicas again", r.replicasReady); err != nil {
		return err
	}
	r.printSeen("%d replicas are Ready again", replicas)
	return nil
}

func childName(i int) string { return "handover-" + strconv.Itoa(i) }

// growTree creates those sub-namespaces that aren't there yet. Right after a crash, the API server may still call the webhook of the dead
// replica, and then refuses the request. This ends after about a second, when kube-proxy knows that the replica is dead.
func (r *run) growTree(ctx context.Context, from, to int) error {
	for i := from; i < to; i++ {
		if err := r.world.As("alice").Create(ctx, build.SubNamespace(tenant, childName(i))); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("alice creates a SubNamespace: %w", err)
		}
	}
	return nil
}

// checkCopies returns an error unless at least that many copies have a value.
func (r *run) checkCopies(ctx context.Context, want int, value string) error {
	if got := r.count(ctx, value); got < want {
		return fmt.Errorf("%d copies of %d say %q", got, want, value)
	}
	return nil
}

func (r *run) count(ctx context.Context, value string) int {
	found := 0
	for i := range children {
		var copied corev1.Secret
		err := r.world.Admin().Get(ctx, client.ObjectKey{Namespace: childName(i), Name: secretName}, &copied)
		if err == nil && bytes.Equal(copied.Data["key"], []byte(value)) {
			found++
		}
	}
	return found
}

// crashPod kills the processes of a pod's container, so that nothing is handed over in order, and deletes the pod, so that
// its container isn't started again.
func (r *run) crashPod(ctx context.Context, name string) error {
	var pod corev1.Pod
	if err := r.world.Admin().Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: name}, &pod); err != nil {
		return fmt.Errorf("looking for the leader: %w", err)
	}
	pids := managersOf(string(pod.UID))
	if len(pids) != 1 {
		return fmt.Errorf("pod %s has %d processes /manager: must be one", name, len(pids))
	}
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		return fmt.Errorf("killing the leader: %w", err)
	}
	if err := r.world.Admin().Delete(ctx, &pod, client.GracePeriodSeconds(0)); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the leader's pod: %w", err)
	}
	return nil
}

// managersOf finds the operator's processes by the cgroup of their pod, whose name has the pod's UID.
func managersOf(podUID string) []int {
	var found []int
	files, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, file := range files {
		groups, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(groups), "pod"+podUID) {
			continue
		}
		dir := filepath.Dir(file)
		command, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !strings.HasPrefix(string(command), "/manager\x00") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			found = append(found, pid)
		}
	}
	return found
}
