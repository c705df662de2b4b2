//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// deployPrevious deploys the version that the cluster is upgraded from.
func (r *run) deployPrevious(ctx context.Context) error { return r.deploy(ctx, r.previous()) }

// upgrade deploys this version over the previous one. Each new pod has to be Ready for a while before the next old one ends, so that both
// versions run beside each other for a minute.
func (r *run) upgrade(ctx context.Context) error {
	const beside = 30 * time.Second // for each of the two replicas
	if err := r.setMinReady(ctx, beside); err != nil {
		return err
	}
	if err := r.changeVersion(ctx, r.current(), "upgrade"); err != nil {
		return err
	}
	return r.setMinReady(ctx, 0)
}

// setMinReady sets a field of the Deployment that no manifest of ours has.
func (r *run) setMinReady(ctx context.Context, d time.Duration) error {
	_, err := r.kubectl(ctx, "patch", "deployment", deployment, "--namespace="+operatorNamespace, "--patch",
		fmt.Sprintf(`{"spec":{"minReadySeconds":%d}}`, int(d.Seconds())))
	return err
}

// downgrade goes back to the previous version, and upgradeAgain comes back to this one.
func (r *run) downgrade(ctx context.Context) error {
	return r.changeVersion(ctx, r.previous(), "downgrade")
}

func (r *run) upgradeAgain(ctx context.Context) error {
	return r.changeVersion(ctx, r.current(), "again")
}

func (r *run) changeVersion(ctx context.Context, to version, stem string) error {
	return r.whileWorking(ctx, stem, stem+" to "+to.name, func(ctx context.Context) error {
		if err := r.applyPolicies(ctx, to); err != nil {
			return err
		}
		return r.deploy(ctx, to)
	})
}

// policiesAlone is how long the policies of one version are in force beside the operator of another.
const policiesAlone = 15 * time.Second

// applyPolicies applies the policies of a version, and lets the operator of the other version work under them. They must refuse none of its
// writes.
func (r *run) applyPolicies(ctx context.Context, v version) error {
	render := exec.CommandContext(ctx, filepath.Join(v.dir, "hack", "render.sh"), overlay, v.image)
	rendered, err := render.Output()
	if err != nil {
		return fmt.Errorf("rendering the policies of %s: %w", v.name, err)
	}
	policies := slices.DeleteFunc(strings.Split(string(rendered), "\n---\n"), func(object string) bool {
		return !strings.Contains("\n"+object, "\nkind: ValidatingAdmissionPolicy")
	})
	if _, stderr, code := r.world.KubectlWith(ctx, controlplane.Admin, strings.Join(policies, "\n---\n"), "apply", "--filename=-"); code != 0 {
		return fmt.Errorf("applying the policies of %s: %s", v.name, stderr)
	}
	select {
	case <-ctx.Done():
	case <-time.After(policiesAlone):
	}
	pods, err := r.pods(ctx)
	if err != nil {
		return err
	}
	refusals, err := r.refusals(ctx, pods)
	if err != nil || refusals > 0 {
		return errors.Join(err, fmt.Errorf("the policies of %s refused %v writes of the operator of the other version: must be none",
			v.name, refusals))
	}
	r.printSeen("%d policies and bindings of %s were in force beside the operator of the other version for %s, and refused it nothing",
		len(policies), v.name, policiesAlone)
	return nil
}

// refusals sums up warren_cage_refusals_total of pods.
func (r *run) refusals(ctx context.Context, pods []corev1.Pod) (float64, error) {
	var sum float64
	for i := range pods {
		address := "https://" + pods[i].Status.PodIP + ":8443/metrics"
		metrics, err := devcluster.FetchMetrics(ctx, address, r.world.Config(controlplane.Admin).BearerToken)
		if err != nil {
			return 0, err
		}
		sum += metrics.Value("warren_cage_refusals_total", nil)
	}
	return sum, nil
}

// whileWorking makes a change in the middle of alice's work: her tree grows and loses namespaces, one Secret spreads over it while another
// changes all the time, a namespace moves from tenant to tenant and back, and a ResourceDistribution begins. No request is refused
// meanwhile, no namespace is lost, and no copy that was there is written again.
func (r *run) whileWorking(ctx context.Context, stem, what string, change func(context.Context) error) error {
	w := &work{run: r, stem: stem}
	if err := w.begin(ctx); err != nil {
		return err
	}
	before, err := r.takeCensus(ctx)
	if err != nil {
		return err
	}
	if err := w.addMoving(ctx); err != nil {
		return err
	}
	began, asking := time.Now(), r.startAsking(ctx)
	changed, worked := w.until(ctx, change)
	lasted, refused := time.Since(began), asking.end()
	for _, err := range []error{changed, worked, refused} {
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	if err := r.waitUntil(ctx, soon, "the end of the work", w.checkDone); err != nil {
		return err
	}
	r.printSeen("%s in %.1f s: %d requests, none refused, the slowest %.2f s; %d steps of work; %d namespaces and %d copies untouched", what,
		lasted.Seconds(), asking.asked, asking.slowest.Seconds(), w.steps, len(before.namespaces), len(before.copies))
	if err := r.checkUntouched(ctx, before); err != nil {
		return err
	}
	return errors.Join(w.deleteNamespaces(ctx), w.deleteReports(ctx))
}
