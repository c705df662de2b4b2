package ui

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/describe"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/graph"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/rights"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/ui/protect"
)

//go:embed assets
var assets embed.FS

// newHandler returns the handler of the pages. It gets paths without /RUN, the secret with which addresses begin. When
// end is done, it ends the event streams.
func (v *server) newHandler(end context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", v.serveForest)
	mux.HandleFunc("GET /namespaces/{name}", v.serveNamespace)
	mux.HandleFunc("GET /tenants/{name}", v.serveTenant)
	mux.HandleFunc("GET /objects/{namespace}/{resource}/{name}", v.serveObject)
	mux.HandleFunc("GET /questions", v.serveQuestion)
	mux.HandleFunc("GET /new", v.serveAction)
	mux.HandleFunc("GET /changes", v.follower.ServeChanges)
	mux.Handle("GET /events", protect.LimitStreams(v.follower.ServeEvents(end)))
	mux.HandleFunc("GET /assets/{file}", serveAsset)
	mux.HandleFunc("/", v.serveUnknown)
	if v.settings.allowChanges {
		mux.HandleFunc("POST /preview", v.servePreview)
		mux.HandleFunc("POST /run", v.serveRun)
		mux.HandleFunc("GET /answers/{id}", v.serveAnswer)
	}
	return mux
}

var errUnknownPage = errors.New("there is no such page")

// serveUnknown answers with a page like all others, which names an icon: for a page without one, the browser would ask
// for /favicon.ico.
func (v *server) serveUnknown(w http.ResponseWriter, _ *http.Request) {
	v.writeFrame(w, "problem", v.newFrame("Not found"), errUnknownPage)
}

// serveAsset answers with the icon, or one of the style sheets and modules.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	name, types := r.PathValue("file"), map[string]string{"css": "text/css; charset=utf-8",
		"js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
	_, extension, _ := strings.Cut(name, ".")
	contentType := types[extension]
	for _, files := range []fs.FS{assets, graph.Assets} {
		data, err := fs.ReadFile(files, "assets/"+name)
		if err == nil && contentType != "" {
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write(data) //nolint:gosec // a file of the program, of one of these types
			return
		}
	}
	http.NotFound(w, r)
}

// parseTemplates returns the templates of the pages: those of the graph's pages, and our own, which replace the rows by
// rows with links.
func parseTemplates(s *settings) *template.Template {
	all := template.Must(graph.Templates.Clone()).Funcs(template.FuncMap{
		"text": graph.EscapeText, "budget": describe.BudgetText, "path": url.PathEscape, "shell": s.quoteCommand, "fails": isFailing,
		"mayNot": func(gap string) string { return strings.Replace(gap, "can't ", "you may not ", 1) },
		"kinds": func() []v1alpha1.SubjectKind {
			return []v1alpha1.SubjectKind{v1alpha1.SubjectUser, v1alpha1.SubjectGroup, v1alpha1.SubjectServiceAccount}
		},
		"fold": foldHash, "onRequest": rights.DescribeOnRequest,
		"words": func(values []string) string { return graph.EscapeText(strings.Join(values, ", ")) },
	})
	return template.Must(all.ParseFS(assets, "assets/*.html"))
}

// foldHash returns the beginning of a value that is a hash; "" for every other value.
func foldHash(value string) string {
	if hash, is := strings.CutPrefix(value, "sha256:"); is && len(hash) == 64 {
		return "sha256:" + graph.EscapeText(hash[:8]) + "…"
	}
	return ""
}

// isFailing reports whether a condition reports a problem. Ready counts, too: the page of one object shows it beside
// its causes.
func isFailing(c metav1.Condition) bool {
	switch v1alpha1.ConditionType(c.Type) {
	case v1alpha1.ConditionReady:
		return c.Status == metav1.ConditionFalse
	case v1alpha1.ConditionStalled:
		return c.Status == metav1.ConditionTrue
	}
	return tree.IsProblem(c)
}

// frame is what surrounds each page.
type frame struct {
	Title   string
	Base    string // /RUN/, the secret path of this run
	Proof   string // by this, the page recognizes messages of this program
	Place   string
	Reader  string
	Changes bool
	Version int
	// Watch names the rows of the forest whose change concerns the page.
	Watch  []string
	Unread []string
	// Error explains what failed; "" where nothing did.
	Error string
	Body  any
}

// describeReader names the user as which the API server authenticates the caller, with the groups of --as-group, and
// whether --as chose the user.
func (v *server) describeReader() string {
	name := v.caller.User
	if len(*v.inv.Flags.ImpersonateGroup) > 0 {
		name += " in " + strings.Join(*v.inv.Flags.ImpersonateGroup, ", ")
	}
	if *v.inv.Flags.Impersonate != "" {
		name += " (by --as)"
	}
	return name
}

func (v *server) newFrame(title string, watch ...string) *frame {
	// Of a page that doesn't exist, the name comes from the address, and may hold anything.
	watch = slices.DeleteFunc(watch, func(name string) bool { return invocation.CheckName("namespace", name) != nil })
	return &frame{
		Title: graph.EscapeText(title), Base: v.guard.Path(), Proof: v.follower.Book().Proof,
		Place: graph.EscapeText(v.place), Reader: graph.EscapeText(v.describeReader()),
		Changes: v.settings.allowChanges, Version: v.follower.Book().Page().Version, Watch: watch,
	}
}

// statusOf returns the status of a page that can't be shown.
func statusOf(err error) int {
	var unserved invocation.UnservedError
	var unseen gather.UnseenError
	switch {
	case errors.Is(err, errUnknownPage), apierrors.IsNotFound(err), errors.As(err, &unserved):
		return http.StatusNotFound
	case apierrors.IsForbidden(err), errors.As(err, &unseen):
		return http.StatusForbidden
	}
	return http.StatusBadGateway
}

// checkName fails with errUnknownPage where an address has a name that no namespace or tenant can have.
func checkName(what, name string) error {
	if err := invocation.CheckName(what, name); err != nil {
		return fmt.Errorf("%w: %w", errUnknownPage, err)
	}
	return nil
}

// writeFrame answers with a page, or with why it can't be shown.
func (v *server) writeFrame(w http.ResponseWriter, name string, f *frame, err error) {
	status := http.StatusOK
	if err != nil {
		status, name, f.Error = statusOf(err), "problem", describeFailure(err)
	}
	var page bytes.Buffer
	if err := v.templates.ExecuteTemplate(&page, name, f); err != nil {
		http.Error(w, "this page can't be shown", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = page.WriteTo(w)
}
