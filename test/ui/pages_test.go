// Package ui_test opens the pages and drawings of the plugin in a browser.
package ui_test

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/ui/browser"
)

// TestMain sets how many groups run at once: most of them only wait.
func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard()) // else controller-runtime asks for one on stderr
	if parallel, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String()); err != nil || parallel < 6 {
		_ = flag.Set("test.parallel", "6")
	}
	os.Exit(m.Run())
}

// TestPages opens the pages of kubectl warren ui in a real browser, on one control plane with the operator. Each group has tenants, people
// and a program of its own.
func TestPages(t *testing.T) {
	c := newCluster(t)
	c.furnish(t)
	for name, group := range map[string]func(*testing.T, *cluster){
		"WEB-U1": testBeginnings,
		"WEB-U2": testLive,
		"WEB-U3 after 200 random changes, a live page has the same rows, text and order as a page that is loaded then": testManyChanges,
		"WEB-U4 8 tabs share one stream; all are promptly live again after " +
			"the tab that holds it is closed, follows a link, or goes back": testTabs,
		"WEB-U5": testNamespacePage,
		"WEB-U6": testTenantPage,
		"WEB-U7": testQuestions,
		"WEB-U8 the page of a source has each namespace that " +
			"it could reach with its word: copy, conflict, unselected, waiting": testReach,
		"WEB-U9": testHistory,
		"WEB-U10 a user who may no longer list HierarchyConfigurations sees that, and a count of known problems; with the right again, all " +
			"problems": testLostRight,
		"WEB-U11":                     testOutage,
		"WEB-U12":                     testEnd,
		"WEB-W1 WEB-W2 WEB-W3 WEB-W9": testForeigners,
		"WEB-W4 WEB-W5 WEB-W7 WEB-W8": testQuiet,
		"WEB-W6 the value of a propagated Secret, plain or base64, is on no page of ui and in no format of graph; the plugin asks for metadata " +
			"of Secrets alone": testSecrets,
		"WEB-G3 on all pages of ui, a hostile User and message " +
			"are shown as text; no script runs, and the browser reports nothing": testHostile,
		"WEB-U16 a manager sees who asks for sudo and why, as text, and once it is granted, until when": testRequests,
		"WEB-C1 WEB-C2 WEB-C5": testCreation,
		"WEB-C3 WEB-C4 WEB-C6": testPeople,
		"WEB-A1 WEB-A4":        testLooks,
		"WEB-A2":               testKeys,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group(t, c)
		})
	}
}

// furnish makes the tenants of the specification: payments with a placed namespace and a conflict, shop, a template and its instance.
func (c *cluster) furnish(t *testing.T) {
	t.Helper()
	c.create(t, build.Template("base"))
	c.newTenant(t, build.Tenant("payments").Users("alice").Managers("mia").Sudoers("bob").Object())
	c.newTenant(t, build.Tenant("shop").Users("dave").Managers("mia").Sudoers("bob").Object())
	c.grow(t, "payments", "pay-web")
	c.grow(t, "pay-web", "pay-db")
	c.create(t, build.Child("legacy", "payments"), build.Secret("pay-web", "db", "own"),
		build.Source(build.Secret("payments", "db", "source"), "update"), build.Namespace("taken"), build.SubNamespace("payments", "taken"))
}

// rowNames is an expression for the names of the rows, in their order.
const rowNames = `Array.from(document.querySelectorAll("[role=treeitem] b"), (b) => b.textContent)`

// hasRow returns an expression that reports whether there is a row directly below the row of parent or, if parent is "", at the top.
func hasRow(name, parent string) string {
	if parent == "" {
		return `document.getElementById("` + name + `")?.closest("[role=tree]") && !document.getElementById("` + name + `").parentElement.parentElement.closest("li")`
	}
	return `document.getElementById("` + name + `")?.parentElement.parentElement.previousElementSibling?.id === "` + parent + `"`
}

func testBeginnings(t *testing.T, c *cluster) {
	begin := func(t *testing.T, user, namespace string) *browser.Page {
		t.Helper()
		return c.serveWith(t, user, options{namespace: namespace}).open("")
	}
	showsRows := func(p *browser.Page, rows ...string) { // those that the API server shows late come live
		p.Helper()
		p.Until("the rows", patience, fmt.Sprintf("JSON.stringify(%s) === JSON.stringify(%s)", rowNames, quoteAll(rows)))
		p.CheckAxe()
	}
	t.Run("WEB-U1 without ROOT, the page of a cluster admin begins at all trees", func(t *testing.T) {
		p := begin(t, "admin", "")
		rows := quoteAll([]string{"base", "payments", "legacy", "pay-db", "pay-web", "taken", "shop"})
		p.Until("the rows", patience, fmt.Sprintf("%s.every((name) => %s.includes(name))", rows, rowNames))
		p.CheckAxe()
	})
	t.Run("WEB-U1 without ROOT, the page of alice, whose context has namespace pay-web, begins at payments", func(t *testing.T) {
		p := begin(t, "alice", "pay-web")
		showsRows(p, "payments", "legacy", "pay-web", "pay-db", "taken")
		p.Do(chromedp.EmulateViewport(900, 420))
		p.Screenshot("readme", false) // docs/pictures/page.png
	})
	t.Run("WEB-U1 without ROOT, the page of mia begins at both tenants", func(t *testing.T) {
		showsRows(begin(t, "mia", ""), "payments", "shop")
	})
	t.Run("WEB-U1 without ROOT, the page of bob begins at both tenants, with: without sudo you may read nothing here", func(t *testing.T) {
		p := begin(t, "bob", "")
		showsRows(p, "payments", "shop")
		p.Until("the reason", patience, `document.body.innerText.includes("payments: without sudo you may read nothing here")`)
	})
	t.Run("WEB-U1 without ROOT, the page of carol has a field for a name, and answers it", func(t *testing.T) {
		p := begin(t, "carol", "")
		showsRows(p)
		p.Fill("Show the tree below", "payments")
		p.Follow(func() { p.ClickText("Show") })
		p.Until("the answer", patience, `document.body.innerText.includes("payments: without sudo you may read nothing here")`)
	})
}

// promptly is 2 s of the specification, and room for a busy machine.
const promptly = 20 * time.Second
