package ui_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/ui/browser"
)

// shownCommand is the command that a page shows.
func shownCommand(p *browser.Page) string {
	p.Helper()
	return browser.Eval[string](p, `document.querySelector(".command code")?.textContent ?? ""`)
}

const hasRun = `Array.from(document.querySelectorAll("button")).some((b) => b.textContent.startsWith("Run"))`

// lastWrite returns the last change that passed the proxy. It fails the test unless there were count changes.
func (r *run) lastWrite(count int) request {
	r.Helper()
	writes := r.proxy.writes()
	if len(writes) != count {
		r.Fatalf("%d writes, want %d: %+v", len(writes), count, writes)
	}
	if count == 0 {
		return request{}
	}
	return writes[count-1]
}

// runShown runs a command of a page by sh, through the proxy, and compares its write with that of the page.
func (r *run) runShown(command string, page request) {
	r.Helper()
	before := len(r.proxy.writes())
	r.shellWith(command)
	same := r.lastWrite(before + 1)
	if same.Method != page.Method || same.URI != page.URI || strings.TrimSpace(same.Body) != strings.TrimSpace(page.Body) {
		r.Errorf("the page sent\n%s %s %s\nand its command\n%s %s %s", page.Method, page.URI, page.Body, same.Method, same.URI, same.Body)
	}
}

func (r *run) shellWith(command string) {
	r.Helper()
	cmd := exec.CommandContext(r.Context(), "/bin/sh", "-c", command)
	cmd.Env = []string{
		"PATH=" + strings.Join([]string{r.Plugins, filepath.Dir(r.KubectlPath), "/usr/bin:/bin"}, ":"),
		"HOME=" + r.TempDir(), "KUBECONFIG=" + filepath.Join(r.dir, "kubeconfig"), "USER=" + r.user, "KUBERC=off",
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		r.Fatalf("%s: %v: %s", command, err, out)
	}
}

func (c *cluster) exists(t testing.TB, namespace, sub string) bool {
	t.Helper()
	err := c.Admin().Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: sub}, &v1alpha1.SubNamespace{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

func testCreation(t *testing.T, c *cluster) {
	c.newTeam(t, "grow")
	r := c.serveWith(t, "grow-alice", options{namespace: "grow"}, "--allow-changes")
	t.Run("WEB-C1 the preview of alice's pay-x makes nothing; Run makes it, by the same verb, URI and body as sh with the shown command; "+
		"WEB-C7 after Run, alice goes back to the preview, without Run, and to the form, then forward to the result; another session gets 404, "+
		"the API server one write", func(t *testing.T) {
		p := r.openIn(t, "namespaces/grow")
		p.Follow(func() { p.ClickText("Create a sub-namespace here") })
		p.CheckAxe()
		p.Fill("Name", "grow-x")
		p.Follow(func() { p.ClickText("Try it") })
		p.CheckAxe()
		p.Screenshot("preview", true)
		command := shownCommand(p)
		equal(p, "command", command, "kubectl warren create grow-x -n grow")
		equal(p, "nothing is made", c.exists(t, "grow", "grow-x"), false)
		r.lastWrite(0)
		p.Follow(func() { p.ClickText("Run") })
		p.Until("done", patience, shows("Done."))
		p.CheckAxe()
		equal(p, "it is made", c.exists(t, "grow", "grow-x"), true)
		page := r.lastWrite(1)
		c.waitForUsers(t, "grow-x")
		p.Until("the way to its page", patience, shows("Open namespaces/grow-x"))
		p.Follow(func() { browser.Eval[bool](p, `history.back() ?? true`) })
		p.Until("back at the preview", patience, shows("It was run already")+" && !("+hasRun+")")
		equal(p, "its command", shownCommand(p), command)
		p.CheckAxe()
		p.Follow(func() { browser.Eval[bool](p, `history.back() ?? true`) })
		equal(p, "back at the form", browser.Eval[string](p, `document.querySelector("h1").textContent`), "Create a sub-namespace in grow")
		p.Follow(func() { browser.Eval[bool](p, `history.go(2) ?? true`) })
		p.Until("forth at the result", patience, shows("Done."))
		if answer := r.browse().get(browser.Eval[string](p, `location.href`)); answer.StatusCode != http.StatusNotFound {
			t.Errorf("another session sees the result: %s", answer.Status)
		}
		r.lastWrite(1)
		c.deleteSub(t, "grow", "grow-x")
		r.runShown(command, page)
	})
	t.Run("WEB-C2 when a limit is reached, the preview of a sub-namespace has the API server's message, and no Run", func(t *testing.T) {
		tenant := &v1alpha1.LNamespace{}
		if err := c.Admin().Get(t.Context(), client.ObjectKey{Name: "grow"}, tenant); err != nil {
			t.Fatal(err)
		}
		c.kubectl(t, "admin", "patch", "lnamespaces", "grow", "--type=merge", "-p", `{"spec":{"limits":{"subNamespaces":3}}}`)
		defer func() {
			c.kubectl(t, "admin", "patch", "lnamespaces", "grow", "--type=merge", "-p", `{"spec":{"limits":null}}`)
			eventually(t, "no limit", func() error {
				return c.Admin().Create(t.Context(), build.SubNamespace("grow", "grow-more"), client.DryRunAll)
			})
		}()
		before := len(r.proxy.writes())
		p := r.openIn(t, "new?do=sub&parent=grow")
		eventually(t, "the refusal", func() error {
			p.Go(r.address("new?do=sub&parent=grow"))
			p.Fill("Name", "grow-y")
			p.Follow(func() { p.ClickText("Try it") })
			if text := p.Text(); !strings.Contains(text, "limit") {
				return fmt.Errorf("%s", text)
			}
			return nil
		})
		equal(p, "Run", browser.Eval[bool](p, hasRun), false)
		t.Logf("the page: %s", browser.Eval[string](p, `document.querySelector("[role=alert].bad, [role=alert].good, .warning")?.textContent ?? ""`))
		r.lastWrite(before)
	})
	t.Run("WEB-C2 when the name is taken, the preview of a sub-namespace has a Warning, and Run", func(t *testing.T) {
		p := r.openIn(t, "new?do=sub&parent=grow")
		p.Fill("Name", "taken")
		p.Follow(func() { p.ClickText("Try it") })
		p.Until("a warning", patience, `document.querySelector(".warning")`)
		equal(p, "Run", browser.Eval[bool](p, hasRun), true)
	})
	t.Run("WEB-C5 a Run from another session, with another body, or for "+
		"the second time is refused; the API server gets one write", func(t *testing.T) {
		before := len(r.proxy.writes())
		p := r.openIn(t, "new?do=sub&parent=grow")
		p.Fill("Name", "grow-once")
		p.Follow(func() { p.ClickText("Try it") })
		id := browser.Eval[string](p, `document.querySelector("[name=run]").value`)
		v := r.browse()
		answered := v.send(http.MethodPost, r.address("run"), url.Values{"run": {id}})
		equal(p, "the status", answered.StatusCode, http.StatusSeeOther)
		if answer := v.get(r.origin + answered.Header.Get("Location")); !strings.Contains(answer.text, "was run already") {
			t.Errorf("another session: %s", answer.text)
		}
		answer := browser.Eval[string](p, `fetch(%q, {method: "POST", body: new URLSearchParams({run: %q, name: "grow-other"})}).then((r) => r.text())`, r.address("run"), id)
		if !strings.Contains(answer, "is not accepted") {
			t.Errorf("another body: %s", answer)
		}
		r.lastWrite(before)
		p.Follow(func() { p.ClickText("Run") })
		p.Until("done", patience, shows("Done."))
		again := browser.Eval[string](p, `fetch(%q, {method: "POST", body: new URLSearchParams({run: %q})}).then((r) => r.text())`, r.address("run"), id)
		if !strings.Contains(again, "was run already") {
			t.Errorf("twice: %s", again)
		}
		r.lastWrite(before + 1)
	})
}

func testPeople(t *testing.T, c *cluster) {
	c.newTeam(t, "raise")
	c.create(t, build.Secret("raise-web", "db", "value"))
	r := c.serve(t, "raise-mia", "raise", "--allow-changes")
	const name = "o'hara $(x)"
	t.Run("WEB-C3 the preview of mia's User o'hara $(x) changes nothing, and Run sends what the shown command sends", func(t *testing.T) {
		p := r.openIn(t, "tenants/raise")
		p.Follow(func() { p.ClickText("Add to the users") })
		p.CheckAxe()
		p.Fill("Name", name)
		p.Follow(func() { p.ClickText("Try it") })
		command := shownCommand(p)
		r.lastWrite(0)
		p.Follow(func() { p.ClickText("Run") })
		p.Until("done", patience, shows("Done."))
		page := r.lastWrite(1)
		c.kubectl(t, "admin", "patch", "lnamespaces", "raise", "--type=json", "-p", `[{"op":"remove","path":"/spec/users/1"}]`)
		r.runShown(command, page)
		tenant := &v1alpha1.LNamespace{}
		if err := c.Admin().Get(t.Context(), client.ObjectKey{Name: "raise"}, tenant); err != nil {
			t.Fatal(err)
		}
		equal(p, "the user", tenant.Spec.Users[1].Name, name)
	})
	t.Run("WEB-C6 Run with sudo, for which bob gives a reason, "+
		"is exactly one request of bob by impersonation, with that reason", func(t *testing.T) {
		r := c.serve(t, "raise-bob", "raise", "--allow-changes")
		mark, err := c.Mark(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p := r.open("new?do=sub&parent=raise")
		p.Fill("Name", "raise-x")
		p.Follow(func() { p.ClickText("Try it") })
		p.Until("the offer", patience, shows("As a sudoer of raise you can send this one request with sudo."))
		p.CheckAxe()
		p.Fill("Reason", "INC-42")
		p.Follow(func() { p.ClickText("Run with sudo") })
		p.Until("done", patience, shows("Done."))
		equal(p, "command", shownCommand(p), "kubectl sudo --tenant raise --reason INC-42 warren create raise-x -n raise")
		requests, err := c.Requests(t.Context(), mark)
		if err != nil {
			t.Fatal(err)
		}
		raised := 0
		for _, request := range requests {
			as := request.Event.ImpersonatedUser
			if request.User != "raise-bob" || as == nil {
				continue
			}
			raised++
			if reason := as.Extra[v1alpha1.Domain+"/reason"]; len(reason) != 1 || reason[0] != "INC-42" || request.Resource != "subnamespaces" {
				t.Errorf("%s for %q", request, reason)
			}
		}
		equal(p, "requests that impersonate", raised, 1)
	})
	t.Run("WEB-C8 a change of the lists is offered to a manager, and not to a user or a sudoer who may not read them", func(t *testing.T) {
		for person, offered := range map[string]bool{"raise-mia": true, "raise-bob": false, "raise-alice": false} {
			r := c.serve(t, person, "raise", "--allow-changes")
			p := r.openIn(t, "tenants/raise")
			for _, offer := range []string{"Add to the users", "Add to the sudoers", "Take off"} {
				equal(p, person+": "+offer, strings.Contains(p.Text(), offer), offered)
			}
			p.Close()
		}
	})
	t.Run("WEB-C4 if another user changes the list between preview and Run, "+
		"nothing is written: the list has changed: open the page again", func(t *testing.T) {
		p := r.openIn(t, "tenants/raise")
		p.Follow(func() { p.ClickText("Add to the users") })
		p.Fill("Name", "late")
		p.Follow(func() { p.ClickText("Try it") })
		c.kubectl(t, "admin", "patch", "lnamespaces", "raise", "--type=json", "-p", `[{"op":"add","path":"/spec/users/-","value":{"kind":"User","name":"nora"}}]`)
		p.Follow(func() { p.ClickText("Run") })
		p.Until("the sentence", patience, shows("the list has changed: open the page again"))
		tenant := &v1alpha1.LNamespace{}
		if err := c.Admin().Get(t.Context(), client.ObjectKey{Name: "raise"}, tenant); err != nil {
			t.Fatal(err)
		}
		for _, user := range tenant.Spec.Users {
			if user.Name == "late" {
				t.Error("it was written")
			}
		}
	})
	t.Run("WEB-C3 a form keeps what was typed; a name that turns text around is shown escaped, and written as it is", func(t *testing.T) {
		p := r.openIn(t, "new?do=add&tenant=raise&list=users&kind=Group&name=bidi%E2%80%AEevil")
		p.Follow(func() { p.ClickText("Try it") })
		command := shownCommand(p)
		if !strings.Contains(command, `"kind":"Group","name":"bidi\u202eevil"`) || strings.ContainsRune(p.Text(), '\u202e') {
			t.Errorf("the command: %q", command)
		}
		p.Follow(func() { p.ClickText("Run") })
		p.Until("done", patience, shows("Done."))
		tenant := &v1alpha1.LNamespace{}
		if err := c.Admin().Get(t.Context(), client.ObjectKey{Name: "raise"}, tenant); err != nil {
			t.Fatal(err)
		}
		want := v1alpha1.Subject{Kind: v1alpha1.SubjectGroup, Name: "bidi\u202eevil"}
		equal(p, "the group", tenant.Spec.Users[len(tenant.Spec.Users)-1], want)
	})
	t.Run("WEB-C3 when mia removes bob from the sudoers, his sudo is denied within 1 s", func(t *testing.T) {
		sudo := c.Sudo("raise-bob", "raise")
		if err := sudo.Get(t.Context(), client.ObjectKey{Namespace: "raise-web", Name: "db"}, &corev1.Secret{}); err != nil {
			t.Fatal(err)
		}
		p := r.openIn(t, "tenants/raise")
		p.Follow(func() { p.Click(`[aria-label="Take off User raise-bob from the sudoers"]`) })
		p.Follow(func() { p.ClickText("Try it") })
		p.CheckAxe()
		p.Follow(func() { p.ClickText("Run") })
		p.Until("done", patience, shows("Done."))
		done := time.Now()
		eventually(t, "the sudoer is denied", func() error {
			if err := sudo.Get(t.Context(), client.ObjectKey{Namespace: "raise-web", Name: "db"}, &corev1.Secret{}); !apierrors.IsForbidden(err) {
				return fmt.Errorf("%v", err)
			}
			return nil
		})
		if took := time.Since(done); took > time.Second+lateness {
			t.Errorf("denied after %s", took)
		}
	})
}
