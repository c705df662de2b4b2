package ui_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/ui/browser"
)

func testLooks(t *testing.T, c *cluster) {
	c.newTeam(t, "look")
	c.create(t, build.Secret("look-web", "key", "own"), build.Source(build.Secret("look", "key", "source"), "update"), quota("look", "pods", "5"))
	r := c.serve(t, "admin", "look", "--allow-changes")
	first := r.open("")
	first.Until("the conflict", patience, `document.getElementById("look-web")?.textContent.includes("Conflict")`)
	for look, steps := range map[string][]browser.Step{
		"light":  {browser.Media("", "prefers-color-scheme", "light")},
		"dark":   {browser.Media("", "prefers-color-scheme", "dark")},
		"forced": {browser.Media("", "forced-colors", "active")},
		"narrow": {chromedp.EmulateViewport(320, 640), browser.Media("", "prefers-reduced-motion", "reduce")},
		"zoom":   {chromedp.EmulateViewport(320, 225, chromedp.EmulateScale(4))},
		"print":  {browser.Media("print")},
	} {
		t.Run("WEB-A1 axe finds no violation on the pages of ui, in light, dark and forced colours; WEB-A4 no page of ui scrolls sideways, at "+
			"320 px or at zoom 400 %, and nothing moves: "+look, func(t *testing.T) {
			p := r.openIn(t, "", steps...)
			for _, address := range pagesOf("look") {
				p.Go(r.address(address))
				if look == "light" || look == "dark" || look == "forced" {
					p.CheckAxe()
				}
				if look != "print" {
					equal(p, "sideways: "+address, browser.Eval[bool](p, `document.documentElement.scrollWidth > innerWidth`), false)
				}
				equal(p, "fields without a label or an example: "+address, browser.Eval[int](p, `Array.from(document.querySelectorAll(".fields :is(input, select):not([type=hidden])")).filter((e) => !e.labels[0]?.querySelector("small")).length`), 0)
				equal(p, "motion: "+address, browser.Eval[int](p, `document.getAnimations().length`), 0)
				if name := screenshots[address]; name != "" && look != "zoom" && look != "forced" {
					p.Screenshot("page-"+name+"-"+look, true)
				}
			}
		})
	}
}

// screenshots are the names of the pages that a person looks at.
var screenshots = map[string]string{
	"": "forest", "namespaces/look-web": "namespace", "tenants/look": "tenant", "objects/look/Secret/key": "object",
	"questions?verb=get&resource=secrets&namespace=look&user=look-bob": "why", "new?do=sub&parent=look": "new",
}

// tabTo presses Tab until the focus is on a link or button with a text, or on a field whose label begins with it, or on a row. It checks
// that whatever has the focus on the way is seen to have it.
func tabTo(p *browser.Page, text string) {
	p.Helper()
	for range 80 {
		p.Press(kb.Tab)
		at := browser.Eval[[]string](p, `(() => { const e = document.activeElement; const s = getComputedStyle(e);
			return [(e.labels?.[0]?.textContent ?? e.id ?? "").trim(), e.textContent.trim(), s.outlineStyle, e.localName, e.id]; })()`)
		if at[3] != "body" && at[2] == "none" {
			p.Errorf("the focus on %q is not seen", at)
		}
		if at[1] == text || at[4] == text || at[0] != "" && strings.HasPrefix(at[0], text) {
			return
		}
	}
	p.Fatalf("the Tab key never reaches %q", text)
}

func testKeys(t *testing.T, c *cluster) {
	c.newTeam(t, "keys")
	r := c.serveWith(t, "keys-alice", options{namespace: "keys"}, "--allow-changes")
	p := r.open("")
	at := func(what, want string) { t.Helper(); equal(p, what, browser.Eval[string](p, focused), want) }
	t.Run("WEB-A2 on the forest page, arrows, Home, End, letters, Enter and the search key work; the focus is visible, and a live change "+
		"keeps it", func(t *testing.T) {
		tabTo(p, "keys")
		p.Press(kb.ArrowDown)
		at("down", "keys-web")
		p.Press(kb.End)
		at("End", "keys-db")
		p.Press(kb.Home)
		at("Home", "keys")
		p.Press("/")
		at("the search", "w:search")
		p.Do(clearSearch)
		p.Press("d", "b")
		p.Press(kb.ArrowDown, kb.Enter)
		waitForFocus(p, "the match", "keys-db")
		c.create(t, build.SubNamespace("keys", "keys-new"))
		p.Until("a live change", promptly, hasRow("keys-new", "keys"))
		at("kept", "keys-db")
		p.Press("k")
		at("a letter", "keys")
	})
	t.Run("WEB-A2 a sub-namespace is made by keys alone", func(t *testing.T) {
		p.Follow(func() { p.Press(kb.Enter) })
		equal(p, "the page", browser.Eval[string](p, `document.title`), "Namespace keys")
		tabTo(p, "Create a sub-namespace here")
		p.Follow(func() { p.Press(kb.Enter) })
		p.Until("the field has the focus", promptly, `document.activeElement.name === "name"`)
		p.Press("k", "e", "y", "s", "-", "x")
		p.Follow(func() { p.Press(kb.Enter) })
		tabTo(p, "Run")
		p.Follow(func() { p.Press(kb.Enter) })
		p.Until("done", patience, shows("Done."))
		equal(p, "it is made", c.exists(t, "keys", "keys-x"), true)
	})
	t.Run("WEB-A2 a question is asked by keys alone", func(t *testing.T) {
		p := c.serve(t, "admin", "keys").open("")
		tabTo(p, "Who may do what")
		p.Follow(func() { p.Press(kb.Enter) })
		for _, field := range [][2]string{{"Verb", "get"}, {"Resource", "secrets"}, {"Namespace", "keys-web"}, {"User", "keys-bob"}} {
			tabTo(p, field[0])
			p.Do(chromedp.KeyEvent(field[1]))
		}
		p.Follow(func() { p.Press(kb.Enter) })
		p.Until("the answer", patience, shows("with sudo of keys"))
	})
}
