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
		"WEB-U1 where each person begins":                        testBeginnings,
		"WEB-U2 what kubectl changes is on the page":             testLive,
		"WEB-U3 after 200 changes the page is as if loaded anew": testManyChanges,
		"WEB-U4 one stream for eight tabs":                       testTabs,
		"WEB-U5 the page of a namespace equals describe":         testNamespacePage,
		"WEB-U6 the page of a tenant":                            testTenantPage,
		"WEB-U7 questions":                                       testQuestions,
		"WEB-U8 where a source has copies":                       testReach,
		"WEB-U9 the history of sudo":                             testHistory,
		"WEB-U10 a right is taken away and given back":           testLostRight,
		"WEB-U11 outages":                                        testOutage,
		"WEB-U12 the end":                                        testEnd,
		"WEB-W1 WEB-W2 WEB-W3 WEB-W9 foreigners":                 testForeigners,
		"WEB-W4 WEB-W5 WEB-W7 WEB-W8 what is not sent":           testQuiet,
		"WEB-W6 no value of a Secret is sent":                    testSecrets,
		"WEB-G3 hostile texts":                                   testHostile,
		"WEB-C1 WEB-C2 WEB-C5 sub-namespaces":                    testCreation,
		"WEB-C3 WEB-C4 WEB-C6 people":                            testPeople,
		"WEB-A1 WEB-A4 looks":                                    testLooks,
		"WEB-A2 by keys alone":                                   testKeys,
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
	t.Run("WEB-U1 an admin sees all", func(t *testing.T) {
		p := begin(t, "admin", "")
		rows := quoteAll([]string{"base", "payments", "legacy", "pay-db", "pay-web", "taken", "shop"})
		p.Until("the rows", patience, fmt.Sprintf("%s.every((name) => %s.includes(name))", rows, rowNames))
		p.CheckAxe()
	})
	t.Run("WEB-U1 a user sees the tree of the context's namespace", func(t *testing.T) {
		p := begin(t, "alice", "pay-web")
		showsRows(p, "payments", "legacy", "pay-web", "pay-db", "taken")
		p.Do(chromedp.EmulateViewport(900, 420))
		p.Screenshot("readme", false) // docs/pictures/page.png
	})
	t.Run("WEB-U1 a manager sees both tenants", func(t *testing.T) {
		showsRows(begin(t, "mia", ""), "payments", "shop")
	})
	t.Run("WEB-U1 a sudoer sees both tenants, and what is missing", func(t *testing.T) {
		p := begin(t, "bob", "")
		showsRows(p, "payments", "shop")
		p.Until("the reason", patience, `document.body.innerText.includes("payments: without sudo you may read nothing here")`)
	})
	t.Run("WEB-U1 a stranger is asked for a name", func(t *testing.T) {
		p := begin(t, "carol", "")
		showsRows(p)
		p.Fill("Show the tree below", "payments")
		p.Follow(func() { p.ClickText("Show") })
		p.Until("the answer", patience, `document.body.innerText.includes("payments: without sudo you may read nothing here")`)
	})
}

// promptly is 2 s of the specification, and room for a busy machine.
const promptly = 20 * time.Second
