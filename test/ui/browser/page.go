package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	_ "embed"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// axe is axe-core. testdata has its licence and checksum.
//
//go:embed testdata/axe.min.js
var axe string

// patience bounds one step, so that a page that hangs ends its test.
const patience = 3 * time.Minute

// Do takes steps, and ends the test where one of them fails.
func (p *Page) Do(steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.Fatal(err)
	}
}

// Eval returns the value of a JavaScript expression in the page. If that is a promise, Eval waits for its value.
func Eval[T any](p *Page, format string, args ...any) T {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](fmt.Sprintf(format, args...), chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("%s: %v", fmt.Sprintf(format, args...), err)
	}
	return value
}

// Press types keys, such as "/" or kb.ArrowDown, where the focus is.
func (p *Page) Press(keys ...string) {
	p.Helper()
	for _, key := range keys {
		p.Do(chromedp.KeyEvent(key))
	}
}

// Media emulates a medium, such as print, and features of it, in pairs such as "prefers-color-scheme", "dark".
func Media(medium string, features ...string) chromedp.Action[chromedp.Void] {
	params := emulation.SetEmulatedMediaParams{Media: medium}
	for i := 0; i < len(features); i += 2 {
		params.Features = append(params.Features, &emulation.MediaFeature{Name: features[i], Value: features[i+1]})
	}
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, params)
		return err
	})
}

// WithoutScripts makes the tab run no scripts of pages.
func WithoutScripts() chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	})
}

// Screenshot writes a picture of the window, or of the whole page, to .reports/ui/NAME.png of the repository.
func (p *Page) Screenshot(name string, whole bool) {
	p.Helper()
	capture := chromedp.CaptureScreenshot()
	if whole {
		capture = chromedp.FullScreenshot(100)
	}
	picture, err := chromedp.Run(p.ctx, capture)
	if err != nil {
		p.Fatalf("screenshot %s: %v", name, err)
	}
	p.Save(name+".png", picture)
}

// Save writes a file to .reports/ui of the repository.
func (p *Page) Save(name string, content []byte) {
	p.Helper()
	dir, err := filepath.Abs("../../.reports/ui")
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), content, 0o644)
	}
	if err != nil {
		p.Fatal(err)
	}
}

// CheckAxe lets axe-core look at the page, and fails the test for each violation.
func (p *Page) CheckAxe() {
	p.Helper()
	type violation struct {
		ID, Help string
		Nodes    []struct{ HTML, FailureSummary string }
	}
	p.Do(chromedp.Evaluate[chromedp.Void](axe + "\n;0"))
	found := Eval[string](p, `axe.run(document, {resultTypes: ["violations"]}).then((r) => JSON.stringify(r.violations))`)
	var violations []violation
	if err := json.Unmarshal([]byte(found), &violations); err != nil {
		p.Fatal(err)
	}
	for _, v := range violations {
		for i, node := range v.Nodes {
			if i < 3 {
				p.Errorf("axe: %s (%s): %.300s: %s", v.ID, v.Help, node.HTML, node.FailureSummary)
			}
		}
	}
}

// Accessible is what assistive technology is told of an element.
type Accessible struct {
	Role, Name string
	Properties map[string]string
}

// AccessibleNodes returns the accessibility tree of the page, without what it ignores.
func (p *Page) AccessibleNodes() []Accessible {
	p.Helper()
	type value struct {
		Value any `json:"value"`
	}
	type tree struct {
		Nodes []struct {
			Ignored    bool  `json:"ignored"`
			Role       value `json:"role"`
			Name       value `json:"name"`
			Properties []struct {
				Name  string `json:"name"`
				Value value  `json:"value"`
			} `json:"properties"`
		} `json:"nodes"`
	}
	got, err := chromedp.Call(p.ctx, cdp.Command[accessibility.GetFullAXTreeParams, tree]{Method: accessibility.CommandGetFullAXTree}, accessibility.GetFullAXTreeParams{})
	if err != nil {
		p.Fatalf("read the accessibility tree: %v", err)
	}
	var all []Accessible
	for _, node := range got.Nodes {
		if node.Ignored {
			continue
		}
		a := Accessible{Role: fmt.Sprint(node.Role.Value), Name: fmt.Sprint(node.Name.Value), Properties: map[string]string{}}
		for _, property := range node.Properties {
			a.Properties[property.Name] = fmt.Sprint(property.Value.Value)
		}
		all = append(all, a)
	}
	return all
}

// Until waits until an expression in the page is true, even if another page is loaded meanwhile. It fails the test if that takes too
// long. The parameter what names what is expected.
func (p *Page) Until(what string, within time.Duration, expression string) {
	p.Helper()
	deadline := time.Now().Add(within)
	for {
		ok, err := p.ask(expression)
		if ok {
			return
		}
		if time.Now().After(deadline) {
			text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string](`location.pathname.replace(/^.[^/]*/, "") + ": " + document.body.innerText.slice(0, 4000)`))
			p.Fatalf("%s: not within %s: %s (%v); the page %s", what, within, expression, err, text)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// ask returns whether an expression is true now.
func (p *Page) ask(expression string) (bool, error) {
	ctx, cancel := context.WithTimeout(p.ctx, 10*time.Second)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")", chromedp.EvalAwaitPromise))
}

// settle is how long a page may take to show what is to be clicked, or what a click leads to.
const settle = 30 * time.Second

// Click clicks with the mouse on the first element that a selector finds. The element is looked for in the page itself, because a live page
// may replace it meanwhile.
func (p *Page) Click(selector string) {
	p.Helper()
	p.clickOn("document.querySelector(" + quote(selector) + ")")
}

// ClickText clicks with the mouse on the first link, button or summary whose text is text, and that can be seen.
func (p *Page) ClickText(text string) { p.Helper(); p.clickOn(withText(text)) }

func withText(text string) string {
	return `Array.from(document.querySelectorAll("a, button, summary")).find((e) => e.textContent.trim() === ` + quote(text) + ` && e.getClientRects().length)`
}

func quote(text string) string {
	quoted, _ := json.Marshal(text)
	return string(quoted)
}

func (p *Page) clickOn(element string) {
	p.Helper()
	const place = `((e) => {
		if (!e) return null;
		e.scrollIntoView({ block: "center" });
		const r = e.getClientRects()[0];
		if (!r) return null;
		const x = r.left + Math.min(r.width / 2, 40), y = r.top + r.height / 2, hit = document.elementFromPoint(x, y);
		return hit && (e.contains(hit) || hit.contains(e)) ? [x, y] : null;
	})(%s)`
	p.Until("something to click on", settle, fmt.Sprintf(place, element))
	at := Eval[[]float64](p, place, element)
	if len(at) != 2 {
		p.clickOn(element) // it has gone meanwhile
		return
	}
	p.Do(chromedp.MouseClickXY(at[0], at[1]))
}

// Follow calls lead, which leads to another page, and waits until that has loaded.
func (p *Page) Follow(lead func()) {
	p.Helper()
	p.Do(chromedp.Evaluate[chromedp.Void](`void (window.left = true)`))
	lead()
	p.Loaded()
}

// Loaded waits until another page is loaded than the one that Follow has left.
func (p *Page) Loaded() {
	p.Helper()
	p.Until("the next page", settle, `!window.left && document.readyState === "complete"`)
}

// Go goes to an address.
func (p *Page) Go(address string) { p.Helper(); p.Do(chromedp.Navigate(address)) }

// Fill types a text into the field with a label.
func (p *Page) Fill(label, text string) {
	p.Helper()
	focused := Eval[bool](p, `(() => {
		const labels = Array.from(document.querySelectorAll("label")), text = %s;
		const field = (labels.find((l) => l.firstChild.textContent.trim() === text) ?? labels.find((l) => l.textContent.trim().startsWith(text)))?.control;
		field?.focus();
		field?.select?.();
		return !!field;
	})()`, quote(label))
	if !focused {
		p.Fatalf("there is no field %q", label)
	}
	p.Do(chromedp.KeyEvent(text))
}

// Text returns the text of the page as it is shown.
func (p *Page) Text() string { p.Helper(); return Eval[string](p, `document.body.innerText`) }

// Table returns the rows of the table with a caption that begins with caption, each a list of the texts of its cells; nil where there is
// none.
func (p *Page) Table(caption string) [][]string {
	p.Helper()
	return Eval[[][]string](p, `(() => {
		const table = Array.from(document.querySelectorAll("table")).find((t) => t.caption.textContent.startsWith(%s));
		return table ? Array.from(table.tBodies[0].rows, (r) => Array.from(r.cells, (c) => c.querySelector("time")?.title ?? c.textContent.trim())) : null;
	})()`, quote(caption))
}

// Facts returns the terms of the page's list of terms, with their descriptions.
func (p *Page) Facts() map[string]string {
	p.Helper()
	return Eval[map[string]string](p, `Object.fromEntries(Array.from(document.querySelectorAll("dt"), (d) => [d.textContent.trim(), d.nextElementSibling.textContent.trim().replace(/\s+/g, " ")]))`)
}

// Close closes the tab before the end of the test, after its faults are reported.
func (p *Page) Close() {
	p.Helper()
	for _, fault := range p.Faults() {
		p.Error("the page: " + fault)
	}
	p.cancel()
}

// Forgive forgets the faults that have a text in them, also those that the browser reports later: the test has caused them on purpose.
func (p *Page) Forgive(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgiven = append(p.forgiven, text)
	p.faults = slices.DeleteFunc(p.faults, func(fault string) bool { return strings.Contains(fault, text) })
}

// Statuses returns the HTTP status of each answer to the page so far.
func (p *Page) Statuses() []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.statuses)
}
