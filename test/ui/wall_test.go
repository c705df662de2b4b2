package ui_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/process"
	"github.com/warren-tenancy/warren/test/forests"
	"github.com/warren-tenancy/warren/test/ui/browser"
)

// pagesOf are the addresses of a page of each sort, for a tenant with a source Secret key in its root.
func pagesOf(team string) []string {
	return []string{
		"", "namespaces/" + team, "namespaces/" + team + "-web", "tenants/" + team, "objects/" + team + "/Secret/key", "objects/" + team + "-web/Secret/key",
		"questions", "questions?verb=get&resource=secrets&namespace=" + team, "questions?verb=get&resource=secrets&namespace=" + team + "&user=" + team + "-bob",
		"new?do=sub&parent=" + team, "new?do=sub&parent=" + team + "&name=x&show=1", "new?do=add&tenant=" + team + "&list=users",
		"new?do=remove&tenant=" + team + "&list=sudoers&place=0&subject=" + url.QueryEscape("User "+team+"-bob"),
	}
}

func testForeigners(t *testing.T, c *cluster) {
	c.newTeam(t, "alone")
	port, err := process.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	r := c.serve(t, "admin", "alone", "--allow-changes", "--port", strconv.Itoa(port)) // on 127.0.0.1, pages of other ports are of the same site
	r.open("")
	t.Run("WEB-W1 Host evil.test, 127.evil.test, 127.0.0.1.evil.test and localhost get 403; so does no Host, by HTTP 1.0", func(t *testing.T) {
		v := r.browse()
		for _, host := range []string{"evil.test", "127.evil.test", "127.0.0.1.evil.test", "localhost:" + r.port()} {
			if answer := v.get(r.address(""), func(r *http.Request) { r.Host = host }); answer.StatusCode != http.StatusForbidden {
				t.Errorf("Host %s: %s", host, answer.Status)
			}
		}
		connection, err := net.Dial("tcp", strings.TrimPrefix(r.origin, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = connection.Close() }()
		_, _ = fmt.Fprintf(connection, "GET %s HTTP/1.0\r\nCookie: %s\r\n\r\n", r.path, v.cookie)
		if text, _ := io.ReadAll(connection); !strings.Contains(string(text), " 403 ") {
			t.Errorf("no Host: %.80s", text)
		}
	})
	t.Run("WEB-W2 a foreign page that knows RUN gets 403 by fetch, img, form, iframe and EventSource; no request reaches the API server, "+
		"nor by speculation rules", func(t *testing.T) {
		foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			if q.URL.Path != "/" {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			_, _ = fmt.Fprintf(w, `<!doctype html><title>foreign</title><link rel=icon href="/icon"><iframe name=f></iframe>
				<script type=speculationrules>{"prefetch": [{"source": "list", "urls": ["%[1]stenants/alone"], "eagerness": "immediate"}]}</script><iframe src="%[1]snamespaces/alone"></iframe><img src="%[1]sassets/icon.svg">
				<form id=form method=post action="%[1]spreview" target=f><input name=do value=sub><input name=parent value=alone><input name=name value=alone-evil></form>
				<script>fetch("%[1]snamespaces/alone", {mode: "no-cors", credentials: "include"}).catch(() => {});
				new EventSource("%[1]sevents", {withCredentials: true}); document.getElementById("form").submit();</script>`, r.address(""))
		}))
		defer foreign.Close()
		before := len(r.proxy.all())
		p := r.browser.Open(t, foreign.URL, foreign.URL)
		count := func() (refused int) {
			for _, status := range p.Statuses() {
				if status == http.StatusForbidden {
					refused++
				}
			}
			return refused
		}
		eventually(t, "five refusals", func() error {
			if count() < 5 {
				return fmt.Errorf("%v", p.Statuses())
			}
			return nil
		})
		for _, status := range p.Statuses() {
			if status != http.StatusForbidden && status != http.StatusOK && status != http.StatusNoContent {
				t.Errorf("status %d", status)
			}
		}
		p.Forgive("") // the test has caused all faults of the page on purpose
		for _, request := range r.proxy.all()[before:] {
			if !strings.Contains(request.URI, "watch=") && !request.isReview() { // the forest's own
				t.Errorf("the API server saw %s %s", request.Method, request.URI)
			}
		}
	})
	t.Run("WEB-W2 a page of the same port without RUN learns nothing from the names of locks", func(t *testing.T) {
		p := r.browser.Open(t, r.origin+"/", r.origin+"/")
		locks := browser.Eval[string](p, `navigator.locks.query().then((all) => JSON.stringify(all))`)
		if !strings.Contains(locks, `"name"`) || strings.Contains(locks, strings.Trim(r.path, "/")) {
			t.Errorf("locks: %s", locks)
		}
		eventually(t, "both answers", func() error {
			if len(p.Statuses()) < 2 {
				return fmt.Errorf("%v", p.Statuses())
			}
			return nil
		})
		p.Forgive("404 (Not Found)") // the page, and its icon
	})
	t.Run("WEB-W3 no cookie, a used token (a Warning in the terminal) or a foreign one gets 401, a wrong RUN 404", func(t *testing.T) {
		stranger := c.chromium.Apart(t)
		p := stranger.Open(t, r.address(""), r.address(""))
		p.Until("the hint", patience, shows("Press Enter where kubectl warren ui runs"))
		p.CheckAxe()
		address := r.enter()
		v := r.stranger()
		for i, want := range []int{http.StatusOK, http.StatusUnauthorized} {
			if answer := v.get(address); answer.StatusCode != want {
				t.Errorf("use %d of a token: %s", i+1, answer.Status)
			}
		}
		eventually(t, "a line in the terminal", func() error {
			if !strings.Contains(r.stderr.String(), "Warning: an address was opened a second time") {
				return fmt.Errorf("%q", r.stderr)
			}
			return nil
		})
		other := c.serve(t, "admin", "alone")
		if answer := v.get(r.address("") + "?token=" + strings.SplitAfter(other.enter(), "token=")[1]); answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("a token of another run: %s", answer.Status)
		}
		if answer := r.browse().get(r.origin + other.path); answer.StatusCode != http.StatusNotFound {
			t.Errorf("a wrong RUN: %s", answer.Status)
		}
		p.Forgive("401")
		p.Forgive("/favicon.ico") // the page of the refusal has no icon: it would be refused, too
	})
	t.Run("WEB-W11 two runs without --port have two addresses, neither 127.0.0.1, and no session of the other; with --port, the address is "+
		"127.0.0.1", func(t *testing.T) {
		own, other := c.serve(t, "admin", "alone"), c.serve(t, "admin", "alone")
		own.open("")
		hosts := []string{own.host(), other.host()}
		if runtime.GOOS == "linux" && (hosts[0] == hosts[1] || slices.Contains(hosts, "127.0.0.1")) {
			t.Errorf("addresses %s", hosts)
		}
		p := own.browser.Open(t, other.address(""), other.address("")) // own's session is no session there
		p.Until("the hint", patience, shows("Press Enter where kubectl warren ui runs"))
		eventually(t, "both answers", func() error {
			if len(p.Statuses()) < 2 {
				return fmt.Errorf("%v", p.Statuses())
			}
			return nil
		})
		p.Forgive("401")
		p.Forgive("/favicon.ico")
		if r.host() != "127.0.0.1" {
			t.Errorf("with --port: %s", r.origin)
		}
	})
	t.Run("WEB-W9 65 KiB get 413, a slow header is cut off; a page beyond 16 streams tries again until it has one", func(t *testing.T) {
		v := r.browse()
		if answer := v.send(http.MethodPost, r.address("preview"), url.Values{"name": {strings.Repeat("x", 65<<10)}}); answer.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("65 KiB: %s", answer.Status)
		}
		connection, err := net.Dial("tcp", strings.TrimPrefix(r.origin, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = connection.Close() }()
		_, _ = io.WriteString(connection, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
		_ = connection.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.ReadAll(connection); err != nil {
			t.Errorf("a slow header: %v", err)
		}
		if free := r.freeStreams(); free > 15 || free < 1 {
			t.Errorf("%d streams", free)
		}
		if answer := v.get(r.address("")); answer.StatusCode != http.StatusOK {
			t.Errorf("others: %s", answer.Status)
		}
		_, end := r.openAllStreams()
		p := r.logIn(t, c.chromium.Apart(t))
		p.Until("it knows that it is refused", patience, shows("Too many pages of kubectl warren ui are open"))
		end()
		r.hasStreams("of both browsers", 2)
		c.create(t, build.SubNamespace("alone", "alone-late"))
		p.Until("it is live after all", patience, hasRow("alone-late", "alone")+` && document.getElementById("w:trouble").hidden`)
		p.Forgive("503")
	})
}

func testQuiet(t *testing.T, c *cluster) {
	c.newTeam(t, "quiet")
	c.create(t, build.Source(build.Secret("quiet", "key", "source"), "update"))
	r := c.serve(t, "admin", "quiet")
	v := r.browse()
	t.Run("WEB-W4 each answer has the headers of 2.4, by each path and method", func(t *testing.T) {
		for _, page := range append(pagesOf("quiet"), "assets/ui.js", "assets/icon.svg", "changes", "preview", "run", "answers/x", "no-such") {
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
				answer := v.send(method, r.address(page), nil)
				for name, want := range map[string]string{
					"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
					"Cross-Origin-Resource-Policy": "same-origin",
				} {
					if got := answer.Header.Get(name); got != want {
						t.Errorf("%s %s: %s: %q", method, page, name, got)
					}
				}
				if csp := answer.Header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; script-src 'self'") {
					t.Errorf("%s %s: %q", method, page, csp)
				}
			}
		}
	})
	t.Run("WEB-W4 the token is in no log, page or Referer", func(t *testing.T) {
		address := r.enter()
		token := strings.SplitAfter(address, "token=")[1]
		p := c.chromium.Apart(t).Open(t, address, r.address(""))
		p.Until("the forest", patience, `!location.search && document.readyState === "complete"`)
		equal(p, "the history", browser.Eval[bool](p, `document.referrer.includes(%q) || document.documentElement.outerHTML.includes(%q)`, token, token), false)
		equal(p, "the address", browser.Eval[bool](p, `location.href.includes("token")`), false)
		if strings.Contains(r.stderr.String(), token) {
			t.Error("the token is in a log")
		}
	})
	t.Run("WEB-W7 without --allow-changes, a POST gets 404, no page has Run, the API server gets only reads and reviews", func(t *testing.T) {
		for _, action := range []string{"preview", "run"} {
			if answer := v.send(http.MethodPost, r.address(action), url.Values{"do": {"sub"}, "parent": {"quiet"}, "name": {"quiet-x"}}); answer.StatusCode != http.StatusNotFound {
				t.Errorf("POST %s: %s", action, answer.Status)
			}
		}
		p := r.open("new?do=sub&parent=quiet")
		p.Fill("Name", "quiet-x")
		p.Follow(func() { p.ClickText("Show the command") })
		equal(p, "the command", browser.Eval[string](p, `document.querySelector(".command code").textContent`), "kubectl warren create quiet-x -n quiet")
		equal(p, "no Run", browser.Eval[bool](p, `Array.from(document.querySelectorAll("button")).some((b) => b.textContent.startsWith("Run"))`), false)
		for _, page := range pagesOf("quiet") {
			p.Go(r.address(page))
		}
		p.Forgive("404")
		for _, request := range r.proxy.all() {
			if request.Method != http.MethodGet && !request.isReview() {
				t.Errorf("%s %s", request.Method, request.URI)
			}
		}
	})
	t.Run("WEB-W5 no argument of --open's browser holds the token; its file has mode 0600, and is deleted after use", func(t *testing.T) {
		dir := t.TempDir()
		script, noted := filepath.Join(dir, "browser"), filepath.Join(dir, "arguments")
		if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$@\" > "+noted+".new && mv "+noted+".new "+noted+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		r := c.startUI(t, "admin", options{env: []string{"BROWSER=" + script}}, "quiet", "--open")
		var file string
		eventually(t, "the browser", func() error {
			data, err := os.ReadFile(noted)
			file = strings.TrimSpace(string(data))
			return err
		})
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%v %v", info, err)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		token := regexp.MustCompile(`token=([\w-]+)`).FindSubmatch(content)
		if token == nil || strings.Contains(file, string(token[1])) {
			t.Fatalf("%s: %s", file, content)
		}
		r.nextAddress()
		p := r.browser.Open(t, "file://"+file, r.address(""))
		p.Until("the forest", patience, `location.protocol === "http:" && !location.search && document.querySelector("[role=tree]")`)
		p.Forgive("request to file://")
		eventually(t, "the end of the file", func() error {
			if _, err := os.Stat(file); !os.IsNotExist(err) {
				return fmt.Errorf("%s is there: %v", file, err)
			}
			return nil
		})
	})
	t.Run("WEB-W5 --open leaves no file when the output is closed early", func(t *testing.T) {
		r := c.newUI(t, "admin", options{env: []string{"BROWSER=true"}}, "quiet", "--open")
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = reader.Close()
		r.process.Stdout = writer
		r.start()
		_ = writer.Close()
		select {
		case <-r.ended:
		case <-time.After(patience):
			t.Fatal("the program goes on")
		}
		left, err := filepath.Glob(filepath.Join(r.dir, "warren-ui-*"))
		if err != nil || len(left) > 0 || !strings.Contains(r.stderr.String(), "printing the address: ") {
			t.Errorf("left: %q %v; it printed %q", left, err, r.stderr)
		}
	})
	t.Run("WEB-W8 with --as and --as-group, the page names this user and this group", func(t *testing.T) {
		p := c.serve(t, "quiet-bob", "quiet", "--as=quiet-bob", "--as-group=quiet-sudoers").open("")
		p.Until("who reads", patience, shows("quiet-bob")+" && "+shows("quiet-sudoers"))
		p.CheckAxe()
	})
	t.Run("WEB-W8 a group of sudoers with --allow-changes, and a "+
		"--port that another program uses, are errors with status 1", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = listener.Close() }()
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		for want, args := range map[string][]string{
			"error: sudo is for one command": {"quiet", "--as=quiet-bob", "--as-group=quiet-sudoers", "--allow-changes"},
			"choose another --port":          {"quiet", "--port", port},
		} {
			r := c.startUI(t, "quiet-bob", options{namespace: "quiet"}, args...)
			if status := r.waitForEnd(); status != 1 || !strings.Contains(r.stderr.String(), want) {
				t.Errorf("%q: status %d: %s", args, status, r.stderr)
			}
		}
	})
}

func testSecrets(t *testing.T, c *cluster) {
	c.newTeam(t, "secret")
	const plain = "Zaphod-Beeblebrox-42"
	encoded := base64.StdEncoding.EncodeToString([]byte(plain))
	manifest := fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: key, namespace: secret, labels: {tenancy.warren.dev/propagate: update}}\ndata: {key: %s}\n", encoded)
	if _, problems, code := c.KubectlWith(t.Context(), "admin", manifest, "apply", "-f", "-"); code != 0 {
		t.Fatal(problems)
	}
	for _, namespace := range []string{"secret-web", "secret-db"} {
		eventually(t, "the copy in "+namespace, func() error {
			if _, problems, code := c.Kubectl(t.Context(), "admin", "get", "secret", "key", "-n", namespace); code != 0 {
				return fmt.Errorf("%s", problems)
			}
			return nil
		})
	}
	r := c.serve(t, "admin", "secret", "--allow-changes")
	p := r.open("")
	hasValue := func(text string) bool { return strings.Contains(text, plain) || strings.Contains(text, encoded) }
	for _, page := range pagesOf("secret") {
		p.Go(r.address(page))
		if hasValue(browser.Eval[string](p, `document.documentElement.outerHTML`)) {
			t.Errorf("page %s shows the value", page)
		}
	}
	for _, format := range []string{"html", "svg", "mermaid"} {
		if hasValue(c.kubectl(t, "admin", "warren", "graph", "secret", "-o", format, "--people", "--file", filepath.Join(t.TempDir(), "file"))) {
			t.Errorf("graph -o %s shows the value", format)
		}
	}
	for _, request := range r.proxy.all() {
		if path, _, _ := strings.Cut(request.URI, "?"); strings.Contains(path, "/secrets") || strings.Contains(path, "/configmaps") {
			for _, form := range strings.Split(strings.Join(request.Header.Values("Accept"), ","), ",") {
				if !strings.Contains(form, "as=PartialObjectMetadata") {
					t.Errorf("%s %s accepts %s", request.Method, request.URI, form)
				}
			}
		}
	}
	if !slices.ContainsFunc(r.proxy.all(), func(q request) bool { return strings.Contains(q.URI, "/secrets") }) {
		t.Error("no Secret was read: the test shows nothing")
	}
}

func testHostile(t *testing.T, c *cluster) {
	c.newTenant(t, build.Tenant("hostile").Users(forests.HostileUser).Sudoers("hostile-bob").Object())
	c.grow(t, "hostile", "hostile-web")
	c.create(t, build.Source(build.Secret("hostile", "key", "source"), "update"))
	c.kubectl(t, "admin", "annotate", "namespace", "hostile-web", "note="+strings.ReplaceAll(forests.HostileMessage, "\u202e", "")+forests.HostileUser)
	r := c.serve(t, "admin", "hostile", "--allow-changes")
	p := r.open("")
	for _, page := range append(pagesOf("hostile"), "questions?verb=get&resource=secrets&namespace=hostile&user="+url.QueryEscape(forests.HostileUser),
		"namespaces/"+url.PathEscape(forests.HostileUser), "new?do=sub&parent="+url.QueryEscape(forests.HostileUser)+"&name=x&show=1") {
		p.Go(r.address(page))
		equal(p, "images on "+page, browser.Eval[int](p, `document.querySelectorAll("img").length`), 0)
	}
	for page, text := range map[string]string{"": forests.HostileUser, "tenants/hostile": forests.HostileUser, "namespaces/hostile-web": "]]> --> "} {
		p.Go(r.address(page))
		p.Until("the text as text", patience, fmt.Sprintf("document.body.textContent.includes(%q)", text))
	}
	p.Forgive("404") // pages of what does not exist
}
