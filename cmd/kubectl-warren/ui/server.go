package ui

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/rights"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/ui/changes"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/ui/live"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/ui/protect"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/ui/restrict"
)

// server answers the pages' requests.
type server struct {
	inv      *invocation.Invocation
	settings *settings
	guard    *protect.Guard
	follower *live.Follower
	// runs are the changes that may be sent, answers the pages that show what the API server has answered to a form.
	runs      *changes.Store[*changes.Run]
	answers   *changes.Store[*actionPage]
	templates *template.Template
	// caller is the identity as which the API server authenticates the plugin. place is the kubeconfig's context or the
	// server's address.
	caller rights.Identity
	place  string
}

func newServer(ctx context.Context, inv *invocation.Invocation, s *settings) (*server, error) {
	restricted, err := restrictInvocation(inv)
	if err != nil {
		return nil, err
	}
	v := &server{
		inv: restricted, settings: s, templates: parseTemplates(s),
		runs: changes.NewStore[*changes.Run](time.Now, changes.RunLifetime), answers: changes.NewStore[*actionPage](time.Now, s.lifetime),
	}
	v.guard = protect.New(func(sentence string) { terminal.Fprintln(inv.Streams.ErrOut, "Warning: "+sentence) }, time.Now)
	config, err := restricted.RESTConfig()
	if err != nil {
		return nil, err
	}
	reporter, err := rights.NewReporter(restricted)
	if err != nil {
		return nil, err
	}
	if v.caller, err = reporter.Caller(ctx); err != nil {
		return nil, fmt.Errorf("asking the API server who you are: %w", err)
	}
	if v.place, err = placeOf(restricted, config); err != nil {
		return nil, err
	}
	homes, err := v.findHomes(ctx)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	api, err := restricted.Connect()
	if err != nil {
		return nil, err
	}
	v.follower, err = live.New(config, scheme, api, s.roots, homes)
	return v, err
}

// restrictInvocation returns an invocation whose clients send only what the pages may send, and that keeps nothing on
// disk.
func restrictInvocation(inv *invocation.Invocation) (*invocation.Invocation, error) {
	config, err := inv.RESTConfig()
	if err != nil {
		return nil, err
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	restricted := *inv
	*restricted.Flags.CacheDir = "/dev/null" // discovery is kept in memory
	restricted.Flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.Wrap(restrictTransport(server.Path))
		return config
	}
	restricted.Restrict = restrict.NewReader
	return &restricted, nil
}

// placeOf names the cluster: the kubeconfig's context, or the server where there is none.
func placeOf(inv *invocation.Invocation, config *rest.Config) (string, error) {
	raw, err := inv.Flags.ToRawKubeConfigLoader().RawConfig()
	return cmp.Or(*inv.Flags.Context, raw.CurrentContext, config.Host), err
}

// reading is an invocation for one request of a page, with the warnings that its functions wrote.
type reading struct {
	*invocation.Invocation
	warnings *bytes.Buffer
}

func (v *server) newReading() reading {
	r := reading{warnings: &bytes.Buffer{}}
	one := *v.inv
	one.Streams.ErrOut, one.Streams.Out = r.warnings, r.warnings
	r.Invocation = &one
	return r
}

// describeUnread returns the warnings, each a sentence: what the caller may not read, and what the API server warns of.
func (r reading) describeUnread() []string {
	var all []string
	for line := range strings.Lines(r.warnings.String()) {
		if line = strings.TrimSpace(strings.TrimPrefix(line, "Warning: ")); line != "" && !slices.Contains(all, line) {
			all = append(all, line)
		}
	}
	return all
}

// findHomes returns the namespaces at which the pages begin for a caller who may not list namespaces; none if the
// command line names roots, or if there are none yet: the pages ask for a root then.
func (v *server) findHomes(ctx context.Context) ([]string, error) {
	if len(v.settings.roots) > 0 {
		return nil, nil
	}
	api, err := v.inv.Connect()
	if err != nil {
		return nil, err
	}
	tops, err := v.inv.FindTops(ctx, api)
	if none := gather.NoTopError(""); errors.As(err, &none) {
		return nil, nil
	}
	return tops, err
}
