package ui_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/graph"
	"github.com/warren-tenancy/warren/test/forests"
	"github.com/warren-tenancy/warren/test/ui/browser"
)

var about = graph.About{Context: "prod", Time: time.Unix(1700000000, 0)}

// draw returns a forest as html or svg.
func draw(t testing.TB, facts graph.Facts, format string, people bool) []byte {
	t.Helper()
	f, err := graph.Build(facts)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	write := f.WriteHTML
	if format == "svg" {
		write = f.WriteSVG
	}
	if _, err := write(&out, graph.Options{About: about, People: people, Depth: -1}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// shown is how many rows can be seen.
const shown = `Array.from(document.querySelectorAll("[role=treeitem]")).filter((r) => r.getClientRects().length).length`

// focused is the id of what has the focus.
const focused = `document.activeElement.id`

func equal[T comparable](p *browser.Page, what string, got, want T) {
	p.Helper()
	if got != want {
		p.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// waitForFocus waits until a row has the focus: a browser tells the page of a link into it in an event of its own, after the click.
func waitForFocus(p *browser.Page, what, id string) {
	p.Helper()
	p.Until(what, promptly, fmt.Sprintf("%s === %q", focused, id))
}

func click(p *browser.Page, id string) {
	p.Helper()
	p.Do(chromedp.Click(chromedp.CSS(`#w\:` + id)))
}

func TestFile(t *testing.T) {
	b := browser.Start(t)
	specified, large := draw(t, forests.Specified(), "html", true), draw(t, forests.Sized(300), "html", false)
	t.Run("WEB-G1 html with scripts off shows all rows", func(t *testing.T) {
		p := b.OpenFile(t, "forest.html", draw(t, forests.Sized(10_000), "html", false), "", browser.WithoutScripts())
		p.Screenshot("without-script", false)
		p.Do(chromedp.WaitVisible(chromedp.ID("team-0001-08")))
	})
	t.Run("WEB-G3 in html and svg, a hostile User and message are "+
		"shown as text; no script runs, and the browser reports nothing", func(t *testing.T) {
		for _, format := range []string{"html", "svg"} {
			p := b.OpenFile(t, "forest."+format, draw(t, forests.Hostile(), format, true), "")
			text := browser.Eval[string](p, `document.documentElement.textContent`)
			for _, want := range []string{forests.HostileUser, `]]> --> " '`} {
				if !strings.Contains(text, want) {
					p.Errorf("%s: %q is not shown", format, want)
				}
			}
			equal(p, "images", browser.Eval[int](p, `document.querySelectorAll("img").length`), 0)
		}
	})
	t.Run("WEB-G6 html of 10 works by keys alone; WEB-A2 in html, arrows, Home, End, letters, Enter, Escape and the search key work, and "+
		"the focus is visible", func(t *testing.T) { useKeys(b.OpenFile(t, "forest.html", specified, "")) })
	t.Run("WEB-G6 in html of 300, and of 10,000, which begins folded: fold, unfold, search, problems alone and one tree alone show the "+
		"right rows and counts", func(t *testing.T) {
		p := b.OpenFile(t, "forest.html", large, "")
		equal(p, "300 begin unfolded", browser.Eval[int](p, shown), 300)
		useControls(p, 300)
		p = b.OpenFile(t, "forest.html", draw(t, forests.Sized(10_000), "html", false), "")
		tops := browser.Eval[int](p, `document.querySelectorAll("[role=tree] > li").length`)
		equal(p, "10,000 begin folded", browser.Eval[int](p, shown), tops)
		useControls(p, 10_000)
	})
	t.Run("WEB-G6 a name in the address of html unfolds the way to that namespace", func(t *testing.T) {
		p := b.OpenFile(t, "forest.html", draw(t, forests.Sized(10_000), "html", false), "#team-0005-09")
		equal(p, "focus", browser.Eval[string](p, focused), "team-0005-09")
		equal(p, "seen", browser.Eval[bool](p, `document.activeElement.getClientRects().length > 0`), true)
	})
	t.Run("WEB-G10 html from disk makes no request; a print after a tree "+
		"is folded has the other rows and + 9 below, but no controls", func(t *testing.T) {
		p := b.OpenFile(t, "forest.html", draw(t, forests.Sized(10), "html", false), "")
		below := browser.Eval[string](p, `document.querySelector("#team-0001 .below").textContent`)
		p.Do(chromedp.Click(chromedp.CSS("#team-0001 b")), browser.Media("print"))
		equal(p, "controls", browser.Eval[bool](p, `document.getElementById("w:controls").getClientRects().length > 0`), false)
		equal(p, "the sign before "+below, browser.Eval[string](p, `getComputedStyle(document.querySelector("#team-0001 .below"), "::before").content`), `"+ "`)
		if got := browser.Eval[int](p, shown); got == 0 || got >= 10 {
			p.Errorf("%d rows are printed", got)
		}
		p.Screenshot("print", true)
	})
}

var clearSearch = chromedp.Evaluate[chromedp.Void](`document.getElementById("w:search").value = ""`)

// useKeys does by keys alone what the page offers.
func useKeys(p *browser.Page) {
	p.Do(chromedp.Focus(chromedp.CSS("[role=treeitem][tabindex='0']")))
	at := func(what, want string) { p.Helper(); equal(p, what, browser.Eval[string](p, focused), want) }
	at("at first", "org")
	p.Press(kb.ArrowDown)
	at("down", "payments")
	p.Press(kb.ArrowRight)
	at("right, into the tree", "legacy")
	p.Press("p")
	at("the next that begins with p", "pay-web")
	p.Press(kb.ArrowLeft)
	equal(p, "folded", browser.Eval[string](p, `document.activeElement.getAttribute("aria-expanded")`), "false")
	p.Press(kb.ArrowLeft)
	at("left, to the parent", "payments")
	p.Press(kb.End)
	at("End", "LNamespace/late")
	p.Press(kb.Home)
	at("Home", "org")
	p.Press(kb.ArrowDown, kb.Enter)
	equal(p, "folded by Enter", browser.Eval[string](p, `document.activeElement.getAttribute("aria-expanded")`), "false")
	p.Press("/")
	at("the search", "w:search")
	p.Do(clearSearch) // the driver also types the character of the key that the page has handled
	p.Press("d", "b")
	equal(p, "matches", browser.Eval[string](p, `document.getElementById("w:found").textContent`), "payments › pay-web › pay-db")
	p.Press(kb.ArrowDown, kb.Enter)
	waitForFocus(p, "the match", "pay-db")
	equal(p, "outline", browser.Eval[string](p, `getComputedStyle(document.activeElement).outlineStyle`), "solid")
	p.Press("/", "x", kb.Escape)
	at("after Escape", "pay-db")
	equal(p, "the search", browser.Eval[string](p, `document.getElementById("w:search").value`), "")
}

// useControls tries the buttons on a page of rows namespaces.
func useControls(p *browser.Page, rows int) {
	p.Helper()
	count := func(what string, want int) { p.Helper(); equal(p, what, browser.Eval[int](p, shown), want) }
	trees := browser.Eval[int](p, `document.querySelectorAll("[role=tree] > li").length`)
	click(p, "fold")
	count("folded", trees)
	click(p, "unfold")
	count("unfolded", rows)
	click(p, "problems")
	want := browser.Eval[int](p, `document.querySelectorAll(".troubled > [role=treeitem]").length`)
	if want == 0 || want >= rows {
		p.Errorf("%d rows are troubled", want)
	}
	count("only problems", want)
	click(p, "problems")
	p.Do(chromedp.Evaluate[chromedp.Void](`document.getElementById("team-0001").focus()`))
	click(p, "focus")
	tree := browser.Eval[int](p, `document.querySelectorAll("#team-0001, #team-0001 + ul [role=treeitem]").length`)
	count("one tree", tree)
	p.Press(kb.Escape)
	count("after Escape", rows)
	p.Do(chromedp.SendKeys(chromedp.CSS(`#w\:search`), "team"))
	found := fmt.Sprintf("200 of %d matches", rows)
	equal(p, "matches", browser.Eval[string](p, `document.getElementById("w:status").textContent`), found)
	equal(p, "matches shown", browser.Eval[int](p, `document.getElementById("w:found").children.length`), 200)
	p.Press(kb.Escape)
	count("after the search", rows)
}

func TestDrawing(t *testing.T) {
	b := browser.Start(t)
	for _, size := range []int{10, 300, 10_000} {
		t.Run(fmt.Sprintf("WEB-G7 svg has at most 500 boxes; no two "+
			"overlap, and each text is inside its box: %d namespaces", size), func(t *testing.T) {
			p := b.OpenFile(t, "forest.svg", draw(t, forests.Sized(size), "svg", false), "")
			p.Screenshot(fmt.Sprintf("svg-%d", size), false)
			checkDrawing(p)
		})
	}
	t.Run("WEB-G7 svg of the fixture with people has no boxes that overlap, and each text is inside its box", func(t *testing.T) {
		p := b.OpenFile(t, "forest.svg", draw(t, forests.Specified(), "svg", true), "")
		p.Screenshot("svg-specified", false)
		checkDrawing(p)
	})
}

// checkDrawing checks that no two boxes overlap, and that each text is inside of its box.
func checkDrawing(p *browser.Page) {
	p.Helper()
	faults := browser.Eval[[]string](p, `(() => {
		const boxes = Array.from(document.querySelectorAll(".node"), (g) => [g, g.querySelector("rect").getBoundingClientRect()]);
		const faults = boxes.length > 510 ? [boxes.length + " boxes"] : [];
		boxes.forEach(([g, r], i) => {
			for (const t of g.querySelectorAll("text")) {
				const b = t.getBoundingClientRect();
				if (b.left < r.left || b.right > r.right || b.top < r.top || b.bottom > r.bottom) faults.push("sticks out: " + t.textContent);
			}
			for (const [, o] of boxes.slice(i + 1)) {
				if (r.left < o.right && o.left < r.right && r.top < o.bottom && o.top < r.bottom) faults.push("overlaps: " + g.textContent);
			}
		});
		return faults.slice(0, 5);
	})()`)
	for _, fault := range faults {
		p.Error(fault)
	}
	equal(p, "boxes", browser.Eval[bool](p, `document.querySelectorAll(".node").length > 1`), true)
}

func TestAccess(t *testing.T) {
	b := browser.Start(t)
	looks := map[string][]chromedp.Action[chromedp.Void]{
		"light":         {browser.Media("", "prefers-color-scheme", "light")},
		"dark":          {browser.Media("", "prefers-color-scheme", "dark")},
		"forced":        {browser.Media("", "forced-colors", "active")},
		"narrow":        {chromedp.EmulateViewport(320, 640)},
		"greyscale":     {browser.Media("", "prefers-reduced-motion", "reduce")},
		"contrast-more": {browser.Media("", "prefers-contrast", "more")},
	}
	for look, steps := range looks {
		t.Run("WEB-A1 axe finds no violation in html, in light, dark and forced colours, nor in its drawing; WEB-A4 html does not scroll "+
			"sideways at 320 px, and nothing moves: "+look, func(t *testing.T) {
			p := b.OpenFile(t, "forest.html", draw(t, forests.Specified(), "html", true), "", steps...)
			p.Screenshot("specified-"+look, true)
			p.CheckAxe()
			equal(p, "sideways", browser.Eval[bool](p, `document.documentElement.scrollWidth > innerWidth`), false)
			equal(p, "motion", browser.Eval[int](p, `document.getAnimations().length`), 0)
			if look == "light" || look == "dark" {
				click(p, "view")
				p.Screenshot("drawing-"+look, false)
				p.CheckAxe()
			}
		})
	}
	for _, size := range []int{10, 300, 10_000} {
		for _, look := range []string{"light", "dark", "narrow"} {
			p := b.OpenFile(t, "forest.html", draw(t, forests.Sized(size), "html", false), "", looks[look]...)
			p.Screenshot(fmt.Sprintf("%d-%s", size, look), false)
		}
	}
	t.Run("WEB-A3 the accessibility tree of 300 unfolded rows has 300 tree items, each with level, set size and state, and its problem in "+
		"its name", func(t *testing.T) {
		checkItems(b.OpenFile(t, "forest.html", draw(t, forests.Sized(300), "html", false), ""))
	})
}

// checkItems checks what assistive technology is told of 300 rows.
func checkItems(p *browser.Page) {
	p.Helper()
	items, levels, states, problems := 0, 0, 0, 0
	for _, node := range p.AccessibleNodes() {
		if node.Role != "treeitem" {
			continue
		}
		items++
		if node.Properties["level"] != "" {
			levels++
		}
		if node.Properties["expanded"] != "" {
			states++
		}
		if strings.Contains(node.Name, "problem: ") && strings.Contains(node.Name, "(Propagated: Conflict)") {
			problems++
		}
	}
	equal(p, "tree items", items, 300)
	equal(p, "with a level", levels, 300)
	equal(p, "with a state", states, browser.Eval[int](p, `document.querySelectorAll("[aria-expanded]").length`))
	equal(p, "with a problem in the name", problems, 20)
	equal(p, "with the size of their set", browser.Eval[int](p, `document.querySelectorAll("[role=treeitem][aria-setsize][aria-posinset]").length`), 300)
}
