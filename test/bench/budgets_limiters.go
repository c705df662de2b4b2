package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// limiter is what limits the pods of a tree.
type limiter struct {
	name string
	// size is how many namespaces a tree has.
	size int
	// mark returns a namespace below parent; "" for the root.
	mark func(parent, name string) *corev1.Namespace
	// limit sets a limit on pods, and waits until it holds. It is nil if nothing limits.
	limit func(ctx context.Context, t quotaTree, pods int) error
	// start and stop are of the program that limits, nil if there is none.
	start, stop func(ctx context.Context) error
	// strict means that a pod above the limit is a failure.
	strict bool
	// ours means that times and writes have a budget, and that the program runs already.
	ours bool
}

func markWarren(parent, name string) *corev1.Namespace {
	if parent == "" {
		return build.Root(name)
	}
	return build.Child(name, parent)
}

func markNone(_, name string) *corev1.Namespace { return build.Namespace(name) }

func (q *quotaBench) limiters() []limiter {
	all := []limiter{
		{name: "no quota", size: 1, mark: markNone},
		{name: "a ResourceQuota", size: 1, mark: markNone, limit: q.limitNatively, strict: true},
		{name: "Warren", size: quotaNamespaces, mark: markWarren, limit: q.limitTree, strict: true, ours: true, start: q.startOperator,
			stop: func(context.Context) error { _, err := q.Operator.Stop(); return err }},
	}
	if q.scale.hnc != "" {
		all = append(all, q.hnc())
	}
	return all
}

func (q *quotaBench) limitNatively(ctx context.Context, t quotaTree, pods int) error {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: t[0], Name: "native"}}
	quota.Spec.Hard = podList(pods)
	if err := q.Admin().Create(ctx, quota); err != nil {
		return err
	}
	return q.awaitQuotas(ctx, t, quota.Name)
}

// compare measures one limiter.
func (q *quotaBench) compare(ctx context.Context, l limiter) error {
	if l.start != nil && !l.ours {
		if err := l.start(ctx); err != nil {
			return err
		}
		defer func() { _ = l.stop(ctx) }()
	}
	if err := q.compareLatency(ctx, l); err != nil || l.limit == nil {
		return err
	}
	if err := q.compareDeployments(ctx, l, 20, spreadLimit); err != nil {
		return err
	}
	if err := q.compareDeployments(ctx, l, quotaPods, wholeLimit); err != nil {
		return err
	}
	if err := q.compareStorm(ctx, l, false); err != nil || l.stop == nil {
		return err
	}
	return q.compareStorm(ctx, l, true)
}

// makeLimited makes a tree and limits it.
func (q *quotaBench) makeLimited(ctx context.Context, l limiter, pods int) (quotaTree, error) {
	t, err := q.plant(ctx, l.size, l.mark)
	if err != nil || l.limit == nil {
		return t, err
	}
	return t, l.limit(ctx, t, pods)
}

// compareLatency times pods that are far from the limit.
func (q *quotaBench) compareLatency(ctx context.Context, l limiter) error {
	t, err := q.makeLimited(ctx, l, 100000)
	if err != nil {
		return err
	}
	took, err := q.timePods(ctx, t[len(t)-1], q.rounds(200, 20))
	if err != nil {
		return err
	}
	q.tell(result{id: "latency", told: true, text: fmt.Sprintf("%s: a pod takes %.1fms, 95 of 100 at most %.1fms", l.name,
		ms(medianOf(took)), ms(percentile(took, 95)))})
	return q.removeTree(ctx, t)
}

// compareDeployments times a Deployment in one namespace of a tree with a limit of quotaPods, and counts the operator's writes for each
// pod.
func (q *quotaBench) compareDeployments(ctx context.Context, l limiter, pods int, seconds float64) error {
	var took []time.Duration
	writes, made := 0, 0
	for range q.rounds(5, 1) {
		t, err := q.makeLimited(ctx, l, quotaPods)
		if err != nil {
			return err
		}
		more, err := q.countShareWrites(ctx, func() error {
			if err := q.deploy(ctx, t[len(t)-1], pods); err != nil {
				return err
			}
			one, err := q.awaitPods(ctx, t, pods)
			took = append(took, one)
			return err
		})
		if err != nil {
			return err
		}
		writes, made = writes+more, made+pods
		if err := q.removeTree(ctx, t); err != nil {
			return err
		}
	}
	each := float64(writes) / float64(made)
	q.tell(result{id: "deploy", told: !l.ours, passed: slices.Max(took).Seconds() <= seconds,
		text: fmt.Sprintf("%s: a Deployment of %d "+
			"of %d pods in one of %d namespaces: %.1fs, at most %.1fs, budget %.0fs", l.name, pods, quotaPods, l.size, medianOf(took).Seconds(),
			slices.Max(took).Seconds(), seconds)})
	if l.ours {
		q.tell(result{id: "writes", counted: true, passed: each <= fillWrites,
			text: fmt.Sprintf("%s: writes of shares for each of these pods: %.2f, "+
				"budget %.1f", l.name, each, fillWrites)})
	}
	return nil
}

// compareStorm lets 16 clients of two API servers create pods in all namespaces at once, and counts those above the limit; with stopped,
// while the limiter doesn't run.
func (q *quotaBench) compareStorm(ctx context.Context, l limiter, stopped bool) error {
	t, err := q.makeLimited(ctx, l, quotaPods)
	if err != nil {
		return err
	}
	state := "runs"
	if stopped {
		state = "is stopped"
		if err := l.stop(ctx); err != nil {
			return err
		}
	}
	if err := q.stormFor(ctx, t, time.Duration(q.rounds(10, 2))*time.Second); err != nil {
		return err
	}
	pods, err := q.countPods(ctx, t)
	if err != nil {
		return err
	}
	q.tell(result{id: "storm", counted: l.strict, told: !l.strict, passed: pods <= quotaPods,
		text: fmt.Sprintf("%s %s: %d pods of %d, from 16 clients of "+
			"two API servers", l.name, state, pods, quotaPods)})
	if stopped {
		if err := l.start(ctx); err != nil {
			return err
		}
	}
	return q.removeTree(ctx, t)
}

// hnc is the HierarchicalResourceQuota of HNC, whose clone, with bin/manager built, is in folder q.scale.hnc.
func (q *quotaBench) hnc() limiter {
	manager, port := (*process.Process)(nil), 0
	return limiter{name: "HNC", size: quotaNamespaces, mark: markNone, limit: q.limitByHNC,
		start: func(ctx context.Context) (err error) {
			if manager == nil {
				if manager, port, err = q.prepareHNC(ctx); err != nil {
					return err
				}
			}
			return manager.StartReady(ctx, process.HTTPOK(nil, "http://127.0.0.1:"+strconv.Itoa(port)+"/readyz"))
		},
		stop: func(context.Context) error { return manager.Stop() },
	}
}

// prepareHNC installs HNC's CRDs and the webhook that decides on ResourceQuotas, and describes its process, whose flags are those of its
// own manifests. It returns the port of its probes.
func (q *quotaBench) prepareHNC(ctx context.Context) (manager *process.Process, probes int, err error) {
	files, err := filepath.Glob(filepath.Join(q.scale.hnc, "config/crd/bases/*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, 0, errors.Join(err, fmt.Errorf("%s holds no clone of HNC", q.scale.hnc))
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		object := &unstructured.Unstructured{}
		if err = errors.Join(err, yaml.Unmarshal(content, &object.Object)); err != nil {
			return nil, 0, err
		}
		if err := q.Admin().Create(ctx, object); err != nil {
			return nil, 0, err
		}
	}
	webhooks, err := process.FreePort()
	if err != nil {
		return nil, 0, err
	}
	if probes, err = process.FreePort(); err != nil {
		return nil, 0, err
	}
	if err := q.Admin().Create(ctx, build.Namespace("hnc-system")); err != nil {
		return nil, 0, err
	}
	if err := q.callHNC(ctx, webhooks); err != nil {
		return nil, 0, err
	}
	args := []string{"--kubeconfig=" + q.Kubeconfig(controlplane.Admin), "--webhook-server-port=" + strconv.Itoa(webhooks), "--metrics-addr=0",
		"--health-probe-bind-address=127.0.0.1:" + strconv.Itoa(probes), "--enable-stackdriver=false", "--max-reconciles=10",
		"--apiserver-qps-throttle=50", "--enable-hrq", "--excluded-namespace=kube-system", "--excluded-namespace=hnc-system"}
	binary, log := filepath.Join(q.scale.hnc, "bin/manager"), filepath.Join(q.Dir, "hnc.log")
	return process.New(binary, args, []string{"TMPDIR=" + q.Dir}, log), probes, nil
}

// callHNC lets the API servers ask HNC about each status of a ResourceQuota, as its manifests do, with the API server's own certificate.
func (q *quotaBench) callHNC(ctx context.Context, port int) error {
	certificates := filepath.Join(q.Dir, "k8s-webhook-server/serving-certs")
	if err := os.MkdirAll(certificates, 0o700); err != nil {
		return err
	}
	var ca []byte
	for _, ending := range []string{"crt", "key"} {
		content, err := os.ReadFile(filepath.Join(q.Dir, "apiserver."+ending))
		if err == nil {
			err = os.WriteFile(filepath.Join(certificates, "tls."+ending), content, 0o600)
		}
		if err != nil {
			return err
		}
		if ending == "crt" {
			ca = content
		}
	}
	url := "https://127.0.0.1:" + strconv.Itoa(port) + "/validate-hnc-x-k8s-io-v1alpha2-resourcequotasstatus"
	return q.Admin().Create(ctx, &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hnc-validating-webhook-configuration"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "resourcesquotasstatus.hnc.x-k8s.io", AdmissionReviewVersions: []string{"v1"},
			ClientConfig:  admissionv1.WebhookClientConfig{URL: &url, CABundle: ca},
			FailurePolicy: new(admissionv1.Ignore), SideEffects: new(admissionv1.SideEffectClassNone),
			Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"resourcequotas/status"}}}},
		}},
	})
}

func (q *quotaBench) limitByHNC(ctx context.Context, t quotaTree, pods int) error {
	for _, name := range t[1:] {
		if err := q.createHNC(ctx, "HierarchyConfiguration", name, "hierarchy", map[string]any{"parent": t[0]}); err != nil {
			return err
		}
	}
	hard := map[string]any{"hard": map[string]any{"pods": strconv.Itoa(pods)}}
	if err := q.createHNC(ctx, "HierarchicalResourceQuota", t[0], "bench", hard); err != nil {
		return err
	}
	return q.awaitQuotas(ctx, t, "hrq.hnc.x-k8s.io")
}

func (q *quotaBench) createHNC(ctx context.Context, kind, namespace, name string, spec map[string]any) error {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "hnc.x-k8s.io", Version: "v1alpha2", Kind: kind})
	object.SetNamespace(namespace)
	object.SetName(name)
	return client.IgnoreAlreadyExists(q.Admin().Create(ctx, object))
}
