package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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

// Eval returns the value of a JavaScript expression in the page, for which it waits if it is a promise.
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

// WithoutScripts has the tab run no scripts of pages.
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

// CheckAxe has axe-core look at the page, and fails the test for each violation.
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
