package ui_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/ui/browser"
)

// shows returns an expression that reports whether the page shows a text.
func shows(text string) string { return fmt.Sprintf("document.body.innerText.includes(%q)", text) }

func testLostRight(t *testing.T, c *cluster) {
	c.newTeam(t, "lost")
	c.create(t, build.Secret("lost-web", "key", "own"), build.Source(build.Secret("lost", "key", "source"), "update"))
	look := func(name string, rule rbacv1.PolicyRule) *rbacv1.ClusterRoleBinding {
		c.create(t, build.ClusterRole(name, rule))
		return build.ClusterRoleBinding(name, name, build.RBACUser("nora"))
	}
	const group = "tenancy.warren.dev"
	hierarchies := func() *rbacv1.ClusterRoleBinding {
		return build.ClusterRoleBinding("lost-hierarchies", "lost-hierarchies", build.RBACUser("nora"))
	}
	c.create(t, look("lost-namespaces", build.Rule("", "namespaces", "get", "list", "watch")), look("lost-subs", build.Rule(group, "subnamespaces", "get", "list", "watch")),
		look("lost-tenants", build.Rule(group, "lnamespaces", "get", "list", "watch")), look("lost-hierarchies", build.Rule(group, "hierarchyconfigurations", "get", "list", "watch")))
	eventually(t, "the rights", func() error {
		if out, problems, code := c.Kubectl(t.Context(), "nora", "get", "namespaces,hierarchyconfigurations,subnamespaces,lnamespaces", "-A"); code != 0 {
			return fmt.Errorf("%s%s", out, problems)
		}
		return nil
	})
	p := c.serve(t, "nora", "lost").open("")
	p.Until("the conflict", patience, `document.getElementById("lost-web")?.textContent.includes("Conflict")`)
	if err := c.Admin().Delete(t.Context(), hierarchies()); err != nil {
		t.Fatal(err)
	}
	p.Until("what is no longer seen", patience, shows("you may not list HierarchyConfigurations")+" && "+shows("known problem"))
	c.create(t, hierarchies())
	p.Until("it is seen again", 2*patience, `document.getElementById("lost-web").textContent.includes("Conflict") && !`+shows("you may not list HierarchyConfigurations"))
}

// lateness is what a busy machine may add to the times of the specification.
const lateness = 25 * time.Second

func testOutage(t *testing.T, c *cluster) {
	c.newTeam(t, "away")
	r := c.serve(t, "admin", "away")
	p := r.open("")
	p.Until("the rows", patience, hasRow("away-db", "away-web"))
	t.Run("WEB-U11 while the API server is away for 30 s, a banner shows it, the plugin sends at most 1 request a second; then the page "+
		"soon has what is new", func(t *testing.T) {
		before := len(r.proxy.all())
		began := time.Now()
		r.proxy.become(isAway)
		p.Until("the banner", patience, `!document.getElementById("w:trouble").hidden && `+shows("Not updated since"))
		equal(p, "what was known is kept", browser.Eval[bool](p, "%s", hasRow("away-db", "away-web")), true)
		c.create(t, build.SubNamespace("away", "away-new"))
		time.Sleep(time.Until(began.Add(30 * time.Second)))
		asked, took := len(r.proxy.all())-before, time.Since(began)
		if float64(asked) > took.Seconds()+8 { // each open watch notices once
			t.Errorf("%d requests in %s", asked, took)
		}
		r.proxy.become(passes)
		back := time.Now()
		p.Until("what was missed", 5*time.Second+lateness, hasRow("away-new", "away"))
		t.Logf("after %s", time.Since(back))
		p.Until("no banner", lateness, `document.getElementById("w:trouble").hidden`)
	})
	t.Run("WEB-U11 when the credentials expire, the page shows how to log in again", func(t *testing.T) {
		r.proxy.become(knowsNobody)
		p.Until("what to do", patience, shows("log in again"))
		p.CheckAxe()
		r.proxy.become(passes)
		p.Until("no banner", patience, `document.getElementById("w:trouble").hidden`)
	})
}

func testEnd(t *testing.T, c *cluster) {
	c.newTeam(t, "ends")
	for name, how := range map[string]struct {
		args   []string
		signal syscall.Signal
		says   string
	}{
		"the lifetime is over": {args: []string{"--lifetime", "1m30s"}, says: "kubectl warren ui has ended: --lifetime 1m30s is over. What this page shows changes no more: run kubectl warren ui again"},
		"Ctrl-C":               {signal: syscall.SIGINT, says: "kubectl warren ui has ended. What this page shows changes no more: run kubectl warren ui again"},
		"SIGHUP":               {signal: syscall.SIGHUP, says: "kubectl warren ui has ended. What this page shows changes no more"},
	} {
		t.Run("WEB-U12 after the lifetime, Ctrl-C or SIGHUP, the command ends without listener and file; both tabs show it, and another "+
			"program on the port gets no request: "+name, func(t *testing.T) {
			t.Parallel()
			r := c.serveWith(t, "admin", options{env: []string{"BROWSER=true"}}, append(how.args, "ends", "--open")...)
			p, other := r.open(""), r.open("")
			p.Until("the rows", patience, hasRow("ends-web", "ends"))
			caughtUp(p, other)
			r.hasStreams("of two tabs", 1)
			status := 0
			if how.signal != 0 {
				status = r.end(how.signal)
			} else {
				status = r.waitForEnd()
			}
			equal(p, "status", status, 0)
			p.Until("the page says so", lateness, shows(how.says))
			other.Until("the other tab says so", lateness, shows(how.says))
			p.CheckAxe()
			if connection, err := net.Dial("tcp", strings.TrimPrefix(r.origin, "http://")); err == nil {
				_ = connection.Close()
				t.Error("it listens still")
			}
			files, err := os.ReadDir(r.dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				if file.Name() != "kubeconfig" {
					t.Errorf("%s is left", file.Name())
				}
			}
			equal(p, "standard error", r.stderr.String(), "")
			p.Forgive("icon.svg")
			requests := r.impersonate(t, "")
			p.Close()
			// The lock is given in the order in which tabs have asked for it: the other tab had it before, and gave it back.
			browser.Eval[bool](other, `navigator.locks.request("warren", () => true)`)
			equal(other, "requests to another program on the port", requests(), int64(0))
			other.Forgive("icon.svg") // loaded late
		})
	}
	t.Run("WEB-U12 if the command is killed and another program takes its port, both tabs keep their rows, show nothing of it, and have: "+
		"Another program answers", func(t *testing.T) {
		t.Parallel()
		r := c.serve(t, "admin", "ends")
		p, other := r.open(""), r.open("")
		for _, tab := range []*browser.Page{p, other} {
			tab.Until("the rows", patience, hasRow("ends-web", "ends"))
		}
		caughtUp(p, other)
		r.end(syscall.SIGKILL)
		p.Until("the page notes it", lateness, shows("kubectl warren ui does not answer"))
		r.impersonate(t, `data: {"proof":"guessed","version":1000,"from":0,"lines":[],"removed":["ends"],"counts":"","unread":["evil"],"trouble":"evil"}`+"\n\n")
		for _, tab := range []*browser.Page{p, other} {
			tab.Until("the page does not believe it", patience, shows("Another program answers in place of kubectl warren ui"))
			equal(tab, "its words are shown", browser.Eval[bool](tab, "%s", shows("evil")), false)
			equal(tab, "the rows are as before", browser.Eval[bool](tab, "%s", hasRow("ends-web", "ends")), true)
			tab.Forgive("events")
			tab.Forgive("icon.svg") // loaded late
		}
	})
}

// caughtUp waits until the tabs have the answer to their first question. Else the program could end between a question and its answer.
func caughtUp(tabs ...*browser.Page) {
	for _, tab := range tabs {
		tab.Until("the answer to its first question", patience, `performance.getEntriesByType("resource").some((one) => one.name.includes("changes?since="))`)
	}
}

// impersonate listens on the port of a program that has ended, answers each request with an event stream that holds text, and returns how
// many requests arrive.
func (r *run) impersonate(t *testing.T, text string) (requests func() int64) {
	t.Helper()
	var count atomic.Int64
	listener, err := net.Listen("tcp", strings.TrimPrefix(r.origin, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	other := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if !strings.HasSuffix(q.URL.Path, "/icon.svg") { // the browser loads it late
			count.Add(1)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, text)
	}))
	_ = other.Listener.Close()
	other.Listener = listener
	other.Start()
	t.Cleanup(other.Close)
	return count.Load
}
