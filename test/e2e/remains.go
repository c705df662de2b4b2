//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// checkReplicas checks that no container of the replicas was started twice, and reads their logs through the kubelet.
func (r *run) checkReplicas(ctx context.Context) error {
	pods, err := r.pods(ctx)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		log, err := r.kubectl(ctx, "logs", pod.Name, "--namespace="+operatorNamespace)
		if err != nil {
			return err
		}
		for _, c := range pod.Status.ContainerStatuses {
			if c.RestartCount > 0 {
				return fmt.Errorf("pod %s was started %d times again", pod.Name, c.RestartCount)
			}
		}
		r.printSeen("%s: never started again, %d lines of log, %d of them errors", pod.Name,
			strings.Count(log, "\n")+1, strings.Count(log, `"level":"error"`))
	}
	return nil
}

func (r *run) undeploy(ctx context.Context) error {
	if err := r.runMake(ctx, r.current(), "undeploy"); err != nil {
		return err
	}
	if err := r.operatorGone(ctx); err != nil {
		return err
	}
	r.printSeen("make undeploy: Deployment, pods and namespace %s are gone", operatorNamespace)
	return nil
}

// checkRemains checks what an undeployed operator leaves: CRDs, tenants, their namespaces, copies, and people's rights.
func (r *run) checkRemains(ctx context.Context) error {
	crds, err := filepath.Glob("config/crd/bases/*.yaml")
	if err != nil || len(crds) == 0 {
		return errors.Join(err, errors.New("config/crd/bases has no CRDs"))
	}
	args := []string{"get", "crd"}
	for _, file := range crds {
		group, plural, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "_")
		args = append(args, plural+"."+group)
	}
	last := childName(children - 1)
	for _, question := range []struct {
		user string
		args []string
	}{
		{"admin", args},
		{"admin", []string{"get", "lns", tenant, "shop"}},
		{"admin", []string{"get", "subns", last, "--namespace=" + tenant}},
		{"admin", []string{"get", "namespace", tenant, "shop", last}},
		{"alice", []string{"get", "secret", secretName, "--namespace=" + last}},
		{"alice", []string{"auth", "can-i", "create", "deployments", "--namespace=" + last}},
	} {
		if _, err := r.kubectlAs(ctx, question.user, question.args...); err != nil {
			return fmt.Errorf("it should have stayed: %w", err)
		}
	}
	r.printSeen("%d CRDs, both tenants, their namespaces, copies and people's rights have stayed", len(crds))
	return nil
}

// keepLogs copies the logs of the node's components and of all pods out of the folder that is removed at the end.
func (r *run) keepLogs(ctx context.Context) {
	if err := os.RemoveAll(r.reports()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	var files []string
	for _, pattern := range []string{"*.log", "controlplane/*.log", "var/log/pods/*/*/*.log"} {
		found, _ := filepath.Glob(filepath.Join(r.dir, pattern))
		files = append(files, found...)
	}
	for _, file := range files {
		name, _ := filepath.Rel(r.dir, file)
		to := filepath.Join(r.reports(), strings.ReplaceAll(name, "/", "_"))
		text, err := os.ReadFile(file)
		if err == nil {
			err = errors.Join(os.MkdirAll(r.reports(), 0o755), os.WriteFile(to, text, 0o644))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "keeping a log:", err)
		}
	}
	if r.world != nil {
		if events, err := r.kubectl(ctx, "get", "events", "-A"); err == nil {
			_ = os.WriteFile(filepath.Join(r.reports(), "events.txt"), []byte(events+"\n"), 0o644)
		}
	}
}
