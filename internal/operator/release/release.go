// Package release is the command `manager release`, which uninstalls the operator: it removes webhooks, policies and finalizers, stops the
// operator, and keeps every namespace and user object.
package release

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/connection"
)

const releaseHelp = `Takes the operator off a cluster: manager release [--kubeconfig FILE] [--operator-namespace NAME]

It deletes webhooks and policies, stops the operator and frees objects that Warren's finalizers hold. No namespace and no
object of a user is deleted. It asks nothing, may be repeated at any time, and goes on where it was interrupted. Run it
as a cluster admin.
`

// releaser takes the operator off one cluster.
type releaser struct {
	namespace string // the operator's own
	api       kubernetes.Interface
	metadata  metadata.Interface
	out       io.Writer
}

// Run takes the operator off the cluster that args name, and writes what it does to out. The order of the steps matters: webhooks and
// policies, which refuse requests, go first, so that no later step can be refused; the operator goes before the finalizers, because the
// operator would put them back.
func Run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints the error
	access := flags.String("kubeconfig", "", "how to reach the cluster; empty: kubectl's rules")
	namespace := flags.String("operator-namespace", "warren-system", "the namespace of the operator's Deployment")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, releaseHelp)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return nil
	case err != nil:
		return fmt.Errorf("release: %w; see manager release --help", err)
	case flags.NArg() > 0:
		return fmt.Errorf("release: unknown argument %q; see manager release --help", flags.Arg(0))
	}
	r, err := newReleaser(*access, *namespace, out)
	if err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{r.endRequests, r.deleteWebhooks, r.deletePolicies, r.stopOperator, r.endRequests,
		r.removeFinalizers, r.deleteOwnRights, r.printRemains} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func newReleaser(path, namespace string, out io.Writer) (*releaser, error) {
	cfg, err := connection.LoadKubeconfig(path)
	if err != nil {
		return nil, err
	}
	return releaserOf(cfg, namespace, out)
}

func releaserOf(cfg *rest.Config, namespace string, out io.Writer) (*releaser, error) {
	r := &releaser{namespace: namespace, out: out}
	var err error
	if r.api, err = kubernetes.NewForConfig(cfg); err != nil {
		return nil, fmt.Errorf("the access to the API server at %s is not usable: %w", cfg.Host, err)
	}
	if r.metadata, err = metadata.NewForConfig(cfg); err != nil {
		return nil, fmt.Errorf("the access to the API server at %s is not usable: %w", cfg.Host, err)
	}
	return r, nil
}

func (r *releaser) printLine(format string, a ...any) { fmt.Fprintf(r.out, format+"\n", a...) }

// deleteWebhooks deletes our two webhook configurations. Without the operator, the API server would refuse each request that matches a
// webhook with failurePolicy Fail.
func (r *releaser) deleteWebhooks(ctx context.Context) error {
	admission := r.api.AdmissionregistrationV1()
	for _, kind := range []struct {
		name   string
		delete func(context.Context, string, metav1.DeleteOptions) error
	}{
		{"ValidatingWebhookConfiguration", admission.ValidatingWebhookConfigurations().Delete},
		{"MutatingWebhookConfiguration", admission.MutatingWebhookConfigurations().Delete},
	} {
		if err := r.deleteObject(ctx, kind.name, v1alpha1.OperatorName, kind.delete); err != nil {
			return err
		}
	}
	return nil
}

// policyPrefix begins the name of each of our policies, also of those that components install. A policy with our label but without this
// prefix belongs to another user, and is not deleted.
const policyPrefix = v1alpha1.OperatorName + "-"

// deletePolicies deletes the bindings first, then the policies: a policy without a binding refuses nothing, while a binding without its
// policy is an error that somebody's dashboard shows.
func (r *releaser) deletePolicies(ctx context.Context) error {
	admission := r.api.AdmissionregistrationV1()
	ours := metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + v1alpha1.OperatorName}
	bindings, err := admission.ValidatingAdmissionPolicyBindings().List(ctx, ours)
	if err != nil {
		return fmt.Errorf("listing policy bindings: %w", err)
	}
	for i := range bindings.Items {
		b := &bindings.Items[i]
		if !strings.HasPrefix(b.Spec.PolicyName, policyPrefix) {
			continue
		}
		if err := r.deleteObject(ctx, "ValidatingAdmissionPolicyBinding", b.Name, admission.ValidatingAdmissionPolicyBindings().Delete); err !=
			nil {
			return err
		}
	}
	policies, err := admission.ValidatingAdmissionPolicies().List(ctx, ours)
	if err != nil {
		return fmt.Errorf("listing policies: %w", err)
	}
	for i := range policies.Items {
		name := policies.Items[i].Name
		if !strings.HasPrefix(name, policyPrefix) {
			continue
		}
		if err := r.deleteObject(ctx, "ValidatingAdmissionPolicy", name, admission.ValidatingAdmissionPolicies().Delete); err != nil {
			return err
		}
	}
	return nil
}

// deleteObject deletes a cluster-scoped object, or finds that it is gone.
func (r *releaser) deleteObject(ctx context.Context, kind, name string,
	del func(context.Context, string, metav1.DeleteOptions) error) error {
	err := del(ctx, name, metav1.DeleteOptions{})
	switch {
	case err == nil:
		r.printLine("deleted %s %s", kind, name)
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("deleting %s %s: %w", kind, name, err)
	}
	return nil
}

// printRemains prints what is left in the cluster, and how to go on.
func (r *releaser) printRemains(ctx context.Context) error {
	tenants, err := r.countObjects(ctx, lnamespaces)
	if err != nil {
		return err
	}
	subs, err := r.countObjects(ctx, subNamespaces)
	if err != nil {
		return err
	}
	r.printLine(`
The operator is off this cluster. What stays: its CRDs, %d LNamespaces, %d SubNamespaces, all namespaces, copies, and the
rights that the tenants' lists give; ClusterRole warren:impersonate-on, which bindings of tenants may name.
The policies and webhooks are gone: a sudoer may now edit the Namespace objects of the tenant's tree and their pod-security
labels. A user who may write in a namespace may change the copies there. Changes of lists, sources and labels have no effect.
To come back: make deploy IMG=…, or apply your manifests again. To go on: make undeploy removes the operator's RBAC and
namespace %s too. To end all sudo rights, delete the CRDs: make deploy, then make undeploy CRDS=true.`, tenants, subs, r.namespace)
	return nil
}

// podsTimeout is how long the operator's pods may take to end: twice their grace period and some more.
const podsTimeout = 60 * time.Second
