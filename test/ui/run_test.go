package ui_test

import (
	"bufio"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/warren-tenancy/warren/test/ui/browser"
)

// lines are what a program prints. mu guards text.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(data)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// run is one run of kubectl warren ui, with a proxy before the API server, and a browser of its own.
type run struct {
	testing.TB
	*cluster
	user    string
	proxy   *proxy
	process *exec.Cmd
	stdin   io.WriteCloser
	stdout  *lines
	stderr  *lines
	ended   chan struct{} // closed when the program has ended
	browser *browser.Browser
	origin  string // http://127.X.Y.Z:PORT
	path    string // /RUN/
	// printed counts the addresses that were taken from the output.
	printed int
	// loggedIn reports whether the browser has a session.
	loggedIn bool
	dir      string
}

// options change how the program is started.
type options struct {
	env       []string
	namespace string // of the kubeconfig's context
}

// serve starts kubectl warren ui as a user.
func (c *cluster) serve(t testing.TB, user string, args ...string) *run {
	t.Helper()
	return c.serveWith(t, user, options{}, args...)
}

func (c *cluster) serveWith(t testing.TB, user string, o options, args ...string) *run {
	t.Helper()
	r := c.startUI(t, user, o, args...)
	r.nextAddress()
	return r
}

// startUI starts the program, and does not wait for its address.
func (c *cluster) startUI(t testing.TB, user string, o options, args ...string) *run {
	t.Helper()
	r := c.newUI(t, user, o, args...)
	r.start()
	return r
}

// newUI prepares a run of the program.
func (c *cluster) newUI(t testing.TB, user string, o options, args ...string) *run {
	t.Helper()
	r := &run{TB: t, cluster: c, user: user, proxy: c.newProxy(t), stdout: &lines{}, stderr: &lines{}, ended: make(chan struct{}), dir: t.TempDir()}
	r.browser = c.chromium.Apart(t)
	cmd := exec.Command(filepath.Join(c.Plugins, "kubectl-warren"), append([]string{"ui"}, args...)...)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "TMPDIR=" + r.dir, "USER=" + user, "KUBECONFIG=" + r.writeKubeconfig(o.namespace),
	}, o.env...)
	cmd.Stdout, cmd.Stderr = r.stdout, r.stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	if r.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	r.process = cmd
	return r
}

// start starts the program, and ends it with the test.
func (r *run) start() {
	r.Helper()
	if err := r.process.Start(); err != nil {
		r.Fatal(err)
	}
	go func() {
		_ = r.process.Wait()
		close(r.ended)
	}()
	r.Cleanup(func() {
		_ = r.process.Process.Kill()
		<-r.ended
		if r.Failed() {
			r.Logf("kubectl warren ui as %s printed:\n%s%s", r.user, r.stdout, r.stderr)
		}
	})
}

// writeKubeconfig writes the user's kubeconfig with the proxy as its server, and context prod.
func (r *run) writeKubeconfig(namespace string) string {
	r.Helper()
	config, err := clientcmd.LoadFromFile(r.Kubeconfig(r.user))
	if err != nil {
		r.Fatal(err)
	}
	for _, one := range config.Clusters {
		one.Server, one.CertificateAuthority = r.proxy.server.URL, ""
		one.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.proxy.server.Certificate().Raw})
	}
	config.Contexts["prod"] = config.Contexts[config.CurrentContext]
	config.Contexts["prod"].Namespace = namespace
	config.CurrentContext = "prod"
	file := filepath.Join(r.dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		r.Fatal(err)
	}
	return file
}

var address = regexp.MustCompile(`(http://127(?:\.\d+){3}:\d+)(/[^/]+/)(\?token=\S+)`)

// nextAddress waits for the next address that the program prints, and returns it.
func (r *run) nextAddress() string {
	r.Helper()
	var found []string
	eventually(r, "an address", func() error {
		all := address.FindAllStringSubmatch(r.stdout.String(), -1)
		if len(all) > r.printed {
			found = all[r.printed]
			return nil
		}
		select {
		case <-r.ended:
			r.Fatalf("kubectl warren ui has ended: %s%s", r.stdout, r.stderr)
		default:
		}
		return fmt.Errorf("it printed %s%s", r.stdout, r.stderr)
	})
	r.printed++
	r.origin, r.path = found[1], found[2]
	return found[0]
}

// enter presses Enter where the program runs, and returns the address that it prints.
func (r *run) enter() string {
	r.Helper()
	if _, err := io.WriteString(r.stdin, "\n"); err != nil {
		r.Fatal(err)
	}
	return r.nextAddress()
}

// end sends a signal and waits for the program's end. It returns the status.
func (r *run) end(signal os.Signal) int {
	r.Helper()
	if err := r.process.Process.Signal(signal); err != nil {
		r.Fatal(err)
	}
	return r.waitForEnd()
}

func (r *run) waitForEnd() int {
	r.Helper()
	select {
	case <-r.ended:
	case <-time.After(2 * patience): // the longest --lifetime of a test is 1m30s
		r.Fatal("kubectl warren ui does not end")
	}
	return r.process.ProcessState.ExitCode()
}

// host is the address at which the program listens.
func (r *run) host() string {
	return strings.TrimSuffix(strings.TrimPrefix(r.origin, "http://"), ":"+r.port())
}

// port is that of the program.
func (r *run) port() string { return r.origin[strings.LastIndex(r.origin, ":")+1:] }

// address is that of a page behind RUN, such as "namespaces/payments".
func (r *run) address(page string) string { return r.origin + r.path + page }

// open opens a page in a tab of its own. The first one logs in.
func (r *run) open(page string, steps ...browser.Step) *browser.Page {
	r.Helper()
	return r.openIn(r.TB, page, steps...)
}

func (r *run) openIn(t testing.TB, page string, steps ...browser.Step) *browser.Page {
	t.Helper()
	if r.loggedIn {
		return r.browser.Open(t, r.address(page), r.address(""), steps...)
	}
	p := r.logIn(t, r.browser, steps...)
	r.loggedIn = true
	if page != "" {
		p.Go(r.address(page))
	}
	return p
}

// logIn opens a new address, and waits until the page that it leads to is there.
func (r *run) logIn(t testing.TB, b *browser.Browser, steps ...browser.Step) *browser.Page {
	t.Helper()
	p := b.Open(t, r.enter(), r.address(""), steps...)
	p.Until("the page behind the login", patience, `!location.search && document.readyState === "complete"`)
	return p
}

// browse returns a client without a browser that has a session.
func (r *run) browse() *visitor {
	r.Helper()
	v := r.stranger()
	answer := v.get(r.enter())
	for _, cookie := range answer.Cookies() {
		v.cookie = cookie.Name + "=" + cookie.Value
	}
	if v.cookie == "" {
		r.Fatalf("no cookie: %s", answer.Status)
	}
	return v
}

// stranger returns a client without a browser that has no session.
func (r *run) stranger() *visitor {
	return &visitor{r, &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, ""}
}

// visitor sends requests as no browser would.
type visitor struct {
	*run
	client *http.Client
	cookie string
}

type answered struct {
	*http.Response
	text string
}

func (v *visitor) get(address string, change ...func(*http.Request)) answered {
	v.Helper()
	return v.send(http.MethodGet, address, nil, change...)
}

func (v *visitor) send(method, address string, form url.Values, change ...func(*http.Request)) answered {
	v.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(v.Context(), method, address, body)
	if err != nil {
		v.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", v.origin)
	}
	if v.cookie != "" {
		r.Header.Set("Cookie", v.cookie)
	}
	for _, one := range change {
		one(r)
	}
	answer, err := v.client.Do(r)
	if err != nil {
		v.Fatalf("%s %s: %v", method, address, err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		v.Fatal(err)
	}
	return answered{answer, string(text)}
}

// hasStreams waits until so many event streams are open: that of a tab which was closed ends a little after the tab.
func (r *run) hasStreams(what string, want int) {
	r.Helper()
	eventually(r.TB, "streams "+what, func() error {
		if open := 16 - r.freeStreams(); open != want {
			return fmt.Errorf("%d are open", open)
		}
		return nil
	})
}

// freeStreams returns how many more event streams the server would open: 16 without the open ones.
func (r *run) freeStreams() int {
	r.Helper()
	free, end := r.openAllStreams()
	end()
	return free
}

// openAllStreams opens event streams until the server refuses one. It returns how many it has opened, and a function that ends them.
func (r *run) openAllStreams() (opened int, end func()) {
	r.Helper()
	v := r.browse()
	var open []io.Closer
	end = func() {
		for _, stream := range open {
			_ = stream.Close()
		}
		v.client.CloseIdleConnections()
	}
	for {
		request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, r.address("events"), nil)
		if err != nil {
			r.Fatal(err)
		}
		request.Header.Set("Cookie", v.cookie)
		answer, err := v.client.Do(request)
		if err != nil {
			r.Fatal(err)
		}
		open = append(open, answer.Body)
		if answer.StatusCode != http.StatusOK {
			return len(open) - 1, end
		}
		_, _ = bufio.NewReader(answer.Body).ReadString('\n')
	}
}
