package ui_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/ui/browser"
)

func testLive(t *testing.T, c *cluster) {
	c.newTeam(t, "live")
	r := c.serve(t, "admin", "live")
	p := r.open("")
	c.grow(t, "live", "live-b")
	p.Until("a new row", promptly, hasRow("live-b", "live"))
	c.grow(t, "live-b", "live-c")
	p.Until("a new row below it", promptly, hasRow("live-c", "live-b"))

	p.Do(chromedp.Evaluate[chromedp.Void](`document.getElementById("live-web").setAttribute("aria-expanded", "false")`),
		chromedp.Focus(chromedp.CSS("#live-b")))
	kept := func(what string) {
		t.Helper()
		equal(p, "focus after "+what, browser.Eval[string](p, focused), "live-b")
		equal(p, "folded after "+what, browser.Eval[string](p, `document.getElementById("live-web").getAttribute("aria-expanded")`), "false")
	}
	t.Run("WEB-U2 a namespace that kubectl makes is promptly at its place; the focus and the folded rows stay", func(t *testing.T) {
		c.grow(t, "live", "live-a")
		p.Until("the row", promptly, hasRow("live-a", "live"))
		p.Until("its place", promptly, `document.getElementById("live-a").getAttribute("aria-posinset") === "1"`)
		equal(p, "the others count it", browser.Eval[string](p, `document.getElementById("live-b").getAttribute("aria-setsize")`), "3")
		kept("a creation")
	})
	t.Run("WEB-U2 a namespace that moves does so promptly on the page, "+
		"with the rows below; the focus and the folded rows stay", func(t *testing.T) {
		c.kubectl(t, "admin", "warren", "move", "live-b", "live-web")
		p.Until("the row", promptly, hasRow("live-b", "live-web"))
		p.Until("its level", promptly, `document.getElementById("live-c").getAttribute("aria-level") === "4"`)
		equal(p, "rows below it", browser.Eval[bool](p, "%s", hasRow("live-c", "live-b")), true)
		equal(p, "each row once", browser.Eval[int](p, `document.querySelectorAll("[id=live-b], [id=live-c]").length`), 2)
		equal(p, "focus, where a row moves into a folded tree", browser.Eval[string](p, focused), "live-web")
		p.Do(chromedp.Evaluate[chromedp.Void](`document.getElementById("live-web").setAttribute("aria-expanded", "true"), document.getElementById("live-b").focus()`))
		c.kubectl(t, "admin", "warren", "move", "live-b", "live")
		p.Until("the row", promptly, hasRow("live-b", "live"))
		p.Do(chromedp.Evaluate[chromedp.Void](`document.getElementById("live-web").setAttribute("aria-expanded", "false")`))
		kept("the way back")
	})
	t.Run("WEB-U2 a conflict and its end are shown", func(t *testing.T) {
		c.create(t, build.Secret("live-db", "key", "own"), build.Source(build.Secret("live", "key", "source"), "update"))
		p.Until("the problem", patience, `document.getElementById("live-db").textContent.includes("Conflict")`)
		kept("a conflict")
		if err := c.Admin().Delete(t.Context(), build.Secret("live-db", "key", "")); err != nil {
			t.Fatal(err)
		}
		p.Until("its end", 2*patience, `!document.getElementById("live-db").textContent.includes("Conflict")`)
	})
	t.Run("WEB-U2 the row of a namespace that is deleted is promptly gone, and the focus goes to a row beside it", func(t *testing.T) {
		c.deleteSub(t, "live", "live-a")
		p.Until("no row", promptly, `!document.getElementById("live-a")`)
		kept("a deletion")
		c.deleteSub(t, "live-b", "live-c")
		p.Until("a row without rows below", promptly, `!document.getElementById("live-b").hasAttribute("aria-expanded")`)
		kept("the deletion of what was below")
		c.deleteSub(t, "live", "live-b")
		p.Until("the focus goes to a row beside", promptly, `document.activeElement.closest("[role=treeitem]")`)
	})
}

// rowTexts is an expression for all that a reader sees of the rows, and what assistive technology is told.
const rowTexts = `Array.from(document.querySelectorAll("[role=treeitem]"), (r) => [r.id, r.className, r.getAttribute("aria-level"), r.getAttribute("aria-posinset"),
	r.getAttribute("aria-setsize"), r.hasAttribute("aria-expanded"), r.parentElement.className, r.textContent.trim(), r.querySelector("a")?.getAttribute("href") ?? ""].join("|"))`

func testManyChanges(t *testing.T, c *cluster) {
	c.newTeam(t, "many")
	r := c.serve(t, "admin", "many")
	p := r.open("")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	w := &changer{TB: t, cluster: c, random: rand.New(rand.NewPCG(seed, 1)), parents: map[string]string{}}
	for i := range 200 {
		w.change(i)
	}
	fresh := r.open("")
	eventually(t, "the live rows are those of a page that is loaded anew", func() error {
		fresh.Do(chromedp.Reload())
		live, anew := browser.Eval[[]string](p, rowTexts), browser.Eval[[]string](fresh, rowTexts)
		if len(live) != len(anew) {
			return fmt.Errorf("%d rows, and %d anew:\n%q\n%q", len(live), len(anew), live, anew)
		}
		for i := range live {
			if live[i] != anew[i] {
				return fmt.Errorf("row %d: %s, and anew %s", i, live[i], anew[i])
			}
		}
		if len(live) != 3+len(w.parents) {
			return fmt.Errorf("%d rows, want %d", len(live), 3+len(w.parents))
		}
		const counts = `document.getElementById("w:counts").textContent`
		if live, anew := browser.Eval[string](p, counts), browser.Eval[string](fresh, counts); live != anew {
			return fmt.Errorf("counts %q, and anew %q", live, anew)
		}
		return nil
	})
}

// changer makes random changes of a tree. parents are the sub-namespaces that it has made, with their parents.
type changer struct {
	testing.TB
	*cluster
	random  *rand.Rand
	parents map[string]string
	names   []string
}

// change makes, moves or deletes a sub-namespace, or makes or ends a conflict.
func (w *changer) change(i int) {
	w.Helper()
	kind := w.random.IntN(100)
	if len(w.names) < 3 || len(w.names) < 20 && kind < 25 {
		w.make(fmt.Sprintf("many-%03d", i))
		return
	}
	name := w.names[w.random.IntN(len(w.names))]
	switch {
	case kind < 30:
		w.move(name)
	case kind < 50:
		w.delete(name)
	default:
		w.trouble(name)
	}
}

func (w *changer) anyParent() string {
	all := append([]string{"many", "many-web", "many-db"}, w.names...)
	return all[w.random.IntN(len(all))]
}

func (w *changer) make(name string) {
	w.Helper()
	parent := w.anyParent()
	w.create(w.TB, build.SubNamespace(parent, name))
	eventually(w.TB, name, func() error { return w.Admin().Get(w.Context(), client.ObjectKey{Name: name}, &corev1.Namespace{}) })
	w.parents[name] = parent
	w.names = append(w.names, name)
}

func (w *changer) move(name string) {
	w.Helper()
	to := w.anyParent()
	for up := to; up != ""; up = w.parents[up] {
		if up == name {
			return
		}
	}
	eventually(w.TB, "move of "+name, func() error {
		_, problems, code := w.Kubectl(w.Context(), "admin", "warren", "move", name, to)
		switch {
		case code == 0:
			w.parents[name] = to
		case strings.Contains(problems, "which was not deleted"): // the operator is behind, and the same command ends the move
			return fmt.Errorf("%s", problems)
		default:
			w.Logf("move %s to %s: %s", name, to, problems)
		}
		return nil
	})
}

func (w *changer) delete(name string) {
	w.Helper()
	for _, parent := range w.parents {
		if parent == name {
			return
		}
	}
	eventually(w.TB, "deletion of "+name, func() error { // it is refused until what was below has ended
		return client.IgnoreNotFound(w.Admin().Delete(w.Context(), build.SubNamespace(w.parents[name], name)))
	})
	delete(w.parents, name)
	for i, other := range w.names {
		if other == name {
			w.names = append(w.names[:i], w.names[i+1:]...)
			break
		}
	}
}

// trouble makes a source above the namespace and an object of the same name in it, or ends this conflict.
func (w *changer) trouble(name string) {
	w.Helper()
	own := build.Secret(name, "key", "own")
	if err := w.Admin().Create(w.Context(), own); apierrors.IsAlreadyExists(err) {
		_ = w.Admin().Delete(w.Context(), own) // a copy may not be deleted
	}
	source := build.Source(build.Secret(w.parents[name], "key", "source"), "update")
	if err := w.Admin().Create(w.Context(), source); err != nil && !apierrors.IsAlreadyExists(err) {
		w.Fatal(err)
	}
}

func testTabs(t *testing.T, c *cluster) {
	c.newTeam(t, "tabs")
	r := c.serve(t, "admin", "tabs")
	pages := []*browser.Page{r.open("")}
	for range 7 {
		pages = append(pages, r.open(""))
	}
	label := 0
	// live checks that each of the pages shows a new row, and that they have one stream.
	live := func(what string, of []*browser.Page) {
		t.Helper()
		label++
		name := fmt.Sprintf("tabs-%d", label)
		c.create(t, build.SubNamespace("tabs", name))
		for i, p := range of {
			p.Until(fmt.Sprintf("tab %d of %d is live %s", i, len(of), what), promptly, hasRow(name, "tabs"))
		}
		r.hasStreams(what, 1)
	}
	live("at first", pages)
	pages[0].Close()
	live("without the tab that had the stream", pages[1:])
	for i, p := range pages[1:] { // one of them has the stream now
		p.Follow(func() { p.ClickText("tabs-web") })
		live("while another shows a namespace", slices.Concat(pages[1:i+1], pages[i+2:]))
		p.Follow(func() { p.Do(chromedp.NavigateBack()) })
	}
	live("after a way through a link and back", pages[1:])
}
