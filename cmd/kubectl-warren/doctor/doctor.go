// Package doctor checks from outside whether Warren is installed soundly on a cluster: its policies, webhooks, rights
// and kinds, as far as a user with a kubeconfig can see them, without access to the operator. It changes nothing: all
// writes that it tries are dry runs.
package doctor

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Status is the outcome of a check.
type Status string

// The outcomes. A check for which the caller lacks a right is a Warning, because its result is unknown.
const (
	OK      Status = "ok"
	Warning Status = "warning"
	Error   Status = "error"
)

// Check is one check and its result.
type Check struct {
	Name    string `json:"name"`
	Status  Status `json:"status"`
	Message string `json:"message"`
	// Advice describes what to do; empty if there is nothing to do.
	Advice string `json:"advice,omitempty"`
}

// Patient is the cluster that is checked.
type Patient struct {
	API client.Client
	// Copies reads objects of every kind that is served, most of them as metadata.
	Copies client.Reader
	// Served maps the kinds that the API server serves to their resources.
	Served meta.RESTMapper
	// Propagable are the kinds that the API server serves and that can have copies.
	Propagable []schema.GroupVersionKind
	// Server asks for the version of the API server.
	Server func() (*version.Info, error)
	// Metrics reads the metrics of the API server.
	Metrics func(context.Context) ([]byte, error)
	// Namespace is the namespace of the operator.
	Namespace string
}

// Examine makes all checks, and returns them in the order in which they are printed.
func (p Patient) Examine(ctx context.Context) []Check {
	file := p.readConfiguration(ctx)
	checks := []Check{p.checkServer(ctx, file), p.checkConfiguration(ctx, file), p.checkDefinitions()}
	checks = append(checks, p.checkPolicies(ctx)...)
	return append(checks, p.podSecurity(ctx), p.checkAPIServices(ctx), p.checkWebhook(ctx), p.checkSudoGroups(ctx), p.checkBindings(ctx),
		p.checkOwners(ctx), p.checkProtected(ctx, file), p.checkSight(ctx, file), p.checkKinds(ctx, file), p.checkSources(ctx, file),
		p.checkBilling(ctx, file), p.checkBudgets(ctx))
}

func passOf(name, message string) Check { return Check{Name: name, Status: OK, Message: message} }

func warnOf(name, message, advice string) Check {
	return Check{Name: name, Status: Warning, Message: message, Advice: advice}
}

// stepAfter returns what to do about an error that left a check without a result: only a missing right sends the user
// to a cluster admin.
func stepAfter(err error) string {
	if apierrors.IsForbidden(err) {
		return "ask a cluster admin to run this"
	}
	return "run this again"
}

// warnOfFailedList returns the warning that objects can't be listed. It sends the user to a cluster admin only if the
// user lacks the right.
func warnOfFailedList(name, what string, err error) Check {
	if apierrors.IsForbidden(err) {
		return warnOf(name, "you may not list "+what+": "+err.Error(), stepAfter(err))
	}
	return warnOf(name, "listing "+what+" failed: "+err.Error(), stepAfter(err))
}

func failOf(name, message, advice string) Check {
	return Check{Name: name, Status: Error, Message: message, Advice: advice}
}
