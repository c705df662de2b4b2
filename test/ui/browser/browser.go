// Package browser drives Debian's Chromium for tests of pages. A test opens a Page; it fails if the page writes an error to the console,
// throws, breaks its content security policy, or sends a request to another address.
package browser

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Browser is one Chromium.
type Browser struct{ ctx context.Context }

// Start starts a Chromium that ends with the test. Where there is none, the test is skipped; in CI it fails.
func Start(t testing.TB) *Browser {
	t.Helper()
	const advice = "no chromium: install Debian's package chromium or set CHROMIUM"
	path := os.Getenv("CHROMIUM")
	if path == "" {
		path, _ = exec.LookPath("chromium")
	}
	switch {
	case path == "" && os.Getenv("CI") == "true":
		t.Fatal(advice)
	case path == "":
		t.Skip(advice)
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.Flag("hide-scrollbars", true), chromedp.WindowSize(1280, 900)}
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // with its sandbox, Chromium refuses to start as root
	}
	ctx, cancel := chromedp.NewContext(t.Context(), chromedp.WithAllocatorOptions(options...))
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return &Browser{ctx}
}

// Apart returns the same Chromium as another person would use it: with cookies, storage and channels of its own.
func (b *Browser) Apart(t testing.TB) *Browser {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("open a browser context: %v", err)
	}
	return &Browser{ctx}
}

// Step is something that is done before a page is opened.
type Step = chromedp.Action[chromedp.Void]

// Page is a tab whose faults are watched.
type Page struct {
	testing.TB
	ctx     context.Context
	cancel  context.CancelFunc
	allowed string

	mu       sync.Mutex // guards what is below it
	faults   []string
	forgiven []string // texts of faults that the test causes on purpose
	statuses []int64
}

// Open opens a tab, takes the steps, and goes to an address. A request is a fault unless its address begins with allowed. The tab closes
// with the test.
func (b *Browser) Open(t testing.TB, address, allowed string, steps ...Step) *Page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	p := &Page{TB: t, ctx: ctx, cancel: cancel, allowed: allowed}
	t.Cleanup(func() {
		for _, fault := range p.Faults() {
			t.Error("the page: " + fault)
		}
		cancel()
	})
	if err := chromedp.Listen(ctx, p.watch); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatalf("watch the network: %v", err)
	}
	p.Do(steps...)
	p.Do(chromedp.Navigate(address))
	return p
}

// OpenFile writes a page to a file of the test and opens it from disk, with hash behind its address. Any other request is a fault.
func (b *Browser) OpenFile(t testing.TB, name string, content []byte, hash string, steps ...Step) *Page {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return b.Open(t, "file://"+file+hash, "file://"+file, steps...)
}

// watch records what a page must not do, and the status of each answer.
func (p *Page) watch(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.addFault("exception: " + e.ExceptionDetails.Text + " " + descriptionOf(e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			p.addFault("console.error: " + descriptionOf(e.Args...))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			p.addFault("browser log: " + e.Entry.Text + " " + e.Entry.URL)
		}
	case *network.EventResponseReceivedExtraInfo:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.statuses = append(p.statuses, e.StatusCode)
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, p.allowed) {
			p.addFault("request to " + e.Request.URL)
		}
	}
}

func descriptionOf(objects ...*runtime.RemoteObject) string {
	var all []string
	for _, object := range objects {
		if object != nil {
			all = append(all, object.Description+string(object.Value))
		}
	}
	return strings.Join(all, " ")
}

func (p *Page) addFault(fault string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.ContainsFunc(p.forgiven, func(text string) bool { return strings.Contains(fault, text) }) {
		p.faults = append(p.faults, fault)
	}
}

// Faults returns the page's faults so far, and forgets them: the test no longer fails for them.
func (p *Page) Faults() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	faults := p.faults
	p.faults = nil
	return faults
}
