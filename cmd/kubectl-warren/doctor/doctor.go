// Package doctor looks at a cluster from outside and says whether Warren's walls stand there: what a person with a
// kubeconfig can see, without access to the operator. It changes nothing: what it tries, it tries by dry run.
package doctor

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Status is the outcome of a check.
type Status string

// The outcomes. What the caller may not look at is a Warning: nobody knows.
const (
	OK      Status = "ok"
	Warning Status = "warning"
	Error   Status = "error"
)

// Check is what was looked at and what was found.
type Check struct {
	Name    string `json:"name"`
	Status  Status `json:"status"`
	Message string `json:"message"`
	// Advice says what to do; empty if there is nothing to do.
	Advice string `json:"advice,omitempty"`
}

// Patient is the cluster that is looked at.
type Patient struct {
	API client.Client
	// Copies reads objects of every kind that is served, as metadata.
	Copies client.Reader
	// Served knows what the API server serves.
	Served meta.RESTMapper
	// Server asks for the version of the API server.
	Server func() (*version.Info, error)
	// Namespace is the operator's own.
	Namespace string
}

// Examine makes all checks, in the order in which they are told.
func (p Patient) Examine(ctx context.Context) []Check {
	file := p.readConfiguration(ctx)
	checks := []Check{p.checkServer(file), p.checkDefinitions()}
	checks = append(checks, p.checkPolicies(ctx)...)
	return append(checks, p.podSecurity(ctx), p.checkWebhook(ctx), p.checkSudoGroups(ctx), p.checkProtected(ctx, file), p.checkSight(ctx, file), p.checkKinds(ctx, file), p.checkBilling(ctx, file))
}

func ok(name, message string) Check { return Check{Name: name, Status: OK, Message: message} }

func warning(name, message, advice string) Check {
	return Check{Name: name, Status: Warning, Message: message, Advice: advice}
}

func failure(name, message, advice string) Check {
	return Check{Name: name, Status: Error, Message: message, Advice: advice}
}
