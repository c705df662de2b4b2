package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/graph"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/rights"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/ui/changes"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/ui/protect"
)

// actionPage is the body of the page of a change: its form, its preview, or its result.
type actionPage struct {
	Asked url.Values
	// Title, Command and Answer are those of the change that the form describes; empty before the form is sent.
	Title, Command string
	Answer         *changes.Answer
	// Error explains why there is no answer; "" where there is one.
	Error string
	// RunID names the change that may now be sent, and SudoTenant the tenant by whose sudo it would be sent; "" for none.
	// Spent reports that it may not be sent any more.
	RunID, SudoTenant string
	Spent             bool
	// Ran reports whether Run was pressed. Place is the page that shows the result.
	Ran   bool
	Place string
}

// Again is the address of the form as it was filled in.
func (p *actionPage) Again() string { return "new?" + p.Asked.Encode() }

func describeFailure(err error) string { return graph.EscapeText(failure.Describe(err)) }

// serveAction shows the form of a change. If the form was sent with show, as it is on pages that can change nothing, it
// also shows the command.
func (v *server) serveAction(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query()
	heading := headingOf(asked)
	if heading == "" {
		v.serveUnknown(w, r)
		return
	}
	frame, page := v.newFrame(heading), &actionPage{Asked: asked}
	frame.Body = page
	if asked.Get("show") != "" {
		action, err := v.readAction(r.Context(), asked)
		if err != nil {
			frame.Error = describeFailure(err)
		} else {
			page.Title, page.Command = graph.EscapeText(action.Title), action.Command(v.settings.connection)
		}
	}
	v.writeFrame(w, "action", frame, nil)
}

// headingOf describes what a form does; "" for a form that does not exist.
func headingOf(asked url.Values) string {
	tenant, list := asked.Get("tenant"), asked.Get("list")
	member, known := map[string]string{"users": "user", "sudoers": "sudoer"}[list]
	switch do := asked.Get("do"); {
	case do == "sub" && asked.Get("parent") == "":
		return "Create a sub-namespace"
	case do == "sub":
		return "Create a sub-namespace in " + asked.Get("parent")
	case do == "add" && known:
		return "Add a " + member + " to " + tenant
	case do == "remove" && known:
		return "Take " + asked.Get("subject") + " off the " + list + " of " + tenant
	}
	return ""
}

// readAction makes the change that a form describes.
func (v *server) readAction(ctx context.Context, asked url.Values) (*changes.Action, error) {
	ask := func(name string) string { return strings.TrimSpace(asked.Get(name)) }
	if ask("do") == "sub" {
		return changes.CreateSub(ask("parent"), ask("name"), ask("labels"))
	}
	api, err := v.newReading().Connect()
	if err != nil {
		return nil, err
	}
	tenant := &v1alpha1.LNamespace{}
	if err := api.Get(ctx, client.ObjectKey{Name: ask("tenant")}, tenant); err != nil {
		return nil, err
	}
	switch ask("do") {
	case "add":
		subject := v1alpha1.Subject{Kind: v1alpha1.SubjectKind(ask("kind")), Namespace: ask("namespace"),
			Name: asked.Get("name")}
		if subject.Kind != v1alpha1.SubjectServiceAccount {
			subject.Namespace = ""
		}
		return changes.AddSubject(tenant, ask("list"), subject)
	case "remove":
		place, err := strconv.Atoi(ask("place"))
		if err != nil {
			return nil, fmt.Errorf("invalid place %q: must be a number", ask("place"))
		}
		return changes.RemoveSubject(tenant, ask("list"), place, asked.Get("subject"))
	}
	return nil, fmt.Errorf("there is no change %q", ask("do"))
}

// servePreview has the API server try a change. The page that it leads to shows the command, the answer, and how to go
// on.
func (v *server) servePreview(w http.ResponseWriter, r *http.Request) {
	if !readForm(w, r) {
		return
	}
	page := &actionPage{Asked: r.PostForm}
	action, err := v.readAction(r.Context(), r.PostForm)
	if err == nil {
		err = v.previewAction(r.Context(), page, action)
	}
	v.leadTo(w, r, page, err)
}

func (v *server) previewAction(ctx context.Context, page *actionPage, action *changes.Action) error {
	config, err := v.inv.RESTConfig()
	if err != nil {
		return err
	}
	page.Title, page.Command = graph.EscapeText(action.Title), action.Command(v.settings.connection)
	answer := changes.DryRun(ctx, config, action)
	page.Answer = &answer
	session := protect.SessionOf(ctx)
	if answer.Done {
		page.RunID = v.runs.Put(session, &changes.Run{Action: action, Command: page.Command, Asked: page.Asked})
		return nil
	}
	if !answer.Refused {
		return nil
	}
	tenant, as, err := v.findSudo(ctx, action)
	if err != nil || as == nil {
		return err
	}
	page.SudoTenant, page.Command = tenant, action.SudoCommand(v.settings.connection, tenant, "")
	page.RunID = v.runs.Put(session, &changes.Run{Action: action, Command: page.Command, Asked: page.Asked, Sudo: as, Tenant: tenant})
	return nil
}

// findSudo returns the identity that the caller may impersonate by sudo of the change's tenant; nil if the caller is
// not known to be a sudoer of it, or impersonates a user already.
func (v *server) findSudo(ctx context.Context,
	action *changes.Action) (tenant string, as *rest.ImpersonationConfig, err error) {
	if *v.inv.Flags.Impersonate != "" {
		return "", nil, nil
	}
	reading := v.newReading()
	reporter, err := rights.NewReporter(reading.Invocation)
	if err != nil {
		return "", nil, err
	}
	if tenant = action.Tenant; tenant == "" {
		tenant = v.tenantOf(ctx, reporter, action.Namespace)
	}
	if tenant == "" {
		return "", nil, nil
	}
	raised, answer, err := reporter.Raise(ctx, tenant, action.Question)
	if err != nil || answer != rights.Yes {
		return "", nil, err
	}
	return tenant, &rest.ImpersonationConfig{UserName: raised.User, Groups: []string{v1alpha1.SudoersGroup(tenant)}}, nil
}

// tenantOf returns the tenant in whose tree a namespace is: by the namespace's annotation or, where the caller may not
// read that, by the forest that the page shows.
func (v *server) tenantOf(ctx context.Context, reporter *rights.Reporter, namespace string) string {
	way := append(v.wayTo(namespace), "")
	if found, err := gather.ReadNamespace(ctx, reporter.API, namespace); err == nil {
		root, _, _ := strings.Cut(found.Annotations[v1alpha1.AnnotationAncestry], "/")
		return cmp.Or(root, way[0])
	}
	return way[0]
}

// serveRun sends a change that was previewed, once.
func (v *server) serveRun(w http.ResponseWriter, r *http.Request) {
	if !readForm(w, r) {
		return
	}
	page := &actionPage{Ran: true}
	err := v.sendChange(r.Context(), r.PostForm, page)
	v.leadTo(w, r, page, err)
}

func (v *server) sendChange(ctx context.Context, form url.Values, page *actionPage) error {
	for name := range form {
		if name != "run" && name != "reason" {
			return fmt.Errorf("a change is run as it was previewed: the field %q is not accepted", name)
		}
	}
	reason := strings.TrimSpace(form.Get("reason"))
	if strings.ContainsFunc(reason, unicode.IsControl) || len(reason) > 256 {
		return errors.New("the reason must be one line of at most 256 bytes")
	}
	config, err := v.inv.RESTConfig()
	if err != nil {
		return err
	}
	run, ok := v.runs.Take(protect.SessionOf(ctx), form.Get("run"))
	if !ok {
		return changes.ErrUnknownRun
	}
	page.Title, page.Command = graph.EscapeText(run.Action.Title), run.Command
	if run.Sudo != nil {
		page.Command = run.Action.SudoCommand(v.settings.connection, run.Tenant, reason)
		if reason != "" {
			run.Sudo.Extra = map[string][]string{reasonKey: {reason}}
		}
	}
	page.Place, page.Asked = run.Action.Place, run.Asked
	answer := changes.Send(context.WithoutCancel(ctx), config, run)
	page.Answer = &answer
	return nil
}

// readForm reads the form of a request, and reports whether it could. If not, it has answered with the reason. It
// refuses a form that is too large, or whose address has a query.
func readForm(w http.ResponseWriter, r *http.Request) bool {
	err := r.ParseForm()
	if err == nil && r.URL.RawQuery == "" {
		return true
	}
	status := http.StatusBadRequest
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		status = http.StatusRequestEntityTooLarge
	}
	http.Error(w, http.StatusText(status), status)
	return false
}
