package ui_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/describe"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/rights"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/ui/browser"
)

// checkTable compares a table of the page with the rows that it should have.
func checkTable(p *browser.Page, caption string, want [][]string) {
	p.Helper()
	got := p.Table(caption)
	if !slices.EqualFunc(got, want, slices.Equal) {
		p.Errorf("%s:\ngot  %q\nwant %q", caption, got, want)
	}
}

func quota(namespace, resources, hard string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "small"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceName(resources): resource.MustParse(hard)}},
	}
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func testNamespacePage(t *testing.T, c *cluster) {
	c.newTeam(t, "page")
	c.create(t, build.Hierarchy("page", build.Propagating("team")),
		build.Secret("page-db", "key", "own"), build.Source(build.Secret("page", "key", "source"), "update"),
		build.Source(build.ConfigMap("page-web", "limits", "x"), "update"), quota("page-web", "pods", "5"))
	c.label(t, "page", "team", "neco")
	r := c.serve(t, "admin", "page")
	// The Secret of page-db conflicts with that of page. Until the conditions report that, they would change while the test compares them.
	settled := map[string]v1alpha1.Reason{"page": v1alpha1.ReasonDescendantConflict, "page-db": v1alpha1.ReasonConflict}
	for _, name := range []string{"page", "page-web", "page-db"} {
		t.Run("WEB-U5 the page of a namespace has what kubectl warren describe and access print with -o json; each bad condition with what to "+
			"do: "+name, func(t *testing.T) {
			var want describe.Namespace
			eventually(t, "the copies of "+name, func() error {
				want = decode[describe.Namespace](t, c.kubectl(t, "admin", "warren", "describe", name, "-o", "json"))
				if len(want.Resources) == 0 && name != "page-db" || !strings.Contains(fmt.Sprintf("%+v", want.Conditions), string(settled[name])) {
					return fmt.Errorf("%+v", want)
				}
				return nil
			})
			p, printed := r.openBetween(t, "namespaces/"+name, "describe "+name, "access page")
			p.CheckAxe()
			want = decode[describe.Namespace](t, printed[0])
			checkDescribed(p, &want)
			checkAccess(p, decode[rights.Access](t, printed[1]))
			p.Close()
		})
	}
	t.Run("WEB-U5 the page of a namespace has the way to the root, each label and annotation with its origin, and quotas", func(t *testing.T) {
		p := r.openIn(t, "namespaces/page-web")
		eventually(t, "the status of the quota", func() error {
			p.Go(r.address("namespaces/page-web"))
			if rows := p.Table("Quotas"); len(rows) != 1 || rows[0][2] != "0" {
				return fmt.Errorf("%q", rows)
			}
			return nil
		})
		equal(p, "way", browser.Eval[string](p, `document.querySelector(".way").textContent`), "page › page-web")
		checkTable(p, "Quotas", [][]string{{"small", "pods", "0", "5"}})
		for _, row := range p.Table("Labels and annotations") {
			if row[3] == "" {
				t.Errorf("%s %s has no origin", row[0], row[1])
			}
			if row[1] == "team" && (row[2] != "neco" || row[3] != "page") {
				t.Errorf("label team: %q", row)
			}
		}
		p.Follow(func() { p.ClickText("page") })
		equal(p, "the link goes up", browser.Eval[string](p, `document.title`), "Namespace page")
	})
	t.Run("WEB-U5 the page of a namespace that does not exist says so", func(t *testing.T) {
		p := r.openIn(t, "namespaces/no-such")
		if text := p.Text(); !strings.Contains(text, `there is no namespace "no-such"`) {
			t.Error(text)
		}
		p.CheckAxe()
		p.Forgive("404")
	})
	t.Run("WEB-U13 the page of a namespace, tenant or object that does not "+
		"exist has status 404; one that the user may not read has 403", func(t *testing.T) {
		alice := c.serveWith(t, "page-alice", options{namespace: "page"})
		for _, one := range []struct {
			by     *run
			page   string
			status int
		}{
			{r, "namespaces/no-such", http.StatusNotFound}, {r, "namespaces/No-Name", http.StatusNotFound},
			{r, "tenants/no-such", http.StatusNotFound}, {r, "tenants/No-Name", http.StatusNotFound},
			{r, "objects/page/Secret/no-such", http.StatusNotFound}, {r, "objects/no-such/Secret/key", http.StatusNotFound},
			{r, "objects/page/no-such/key", http.StatusNotFound}, {r, "objects/page/Pod/key", http.StatusNotFound},
			{r, "new?do=no-such", http.StatusNotFound},
			{alice, "namespaces/kube-system", http.StatusForbidden}, {alice, "objects/kube-system/Secret/key", http.StatusForbidden},
		} {
			if answer := one.by.browse().get(one.by.address(one.page)); answer.StatusCode != one.status {
				t.Errorf("%s: %s: %s", one.page, answer.Status, answer.text)
			}
		}
	})
	t.Run("WEB-U14 if another object is in the way of a copy, the condition "+
		"has its mark, and a row links to the page of the source", func(t *testing.T) {
		p := r.openIn(t, "namespaces/page-db")
		equal(p, "the marks", browser.Eval[string](p, `Array.from(document.querySelectorAll(".failed"), (e) => getComputedStyle(e, "::before").content[1]).join("")`), "▲▲▲")
		p.Follow(func() { p.ClickText("key") })
		equal(p, "the link", browser.Eval[string](p, `document.title`), "Secret key in page")
		equal(p, "its row", p.Table("Namespaces that it could reach")[1][1], "conflict")
	})
	t.Run("WEB-U5 when something changes, the page of a namespace promptly offers to show it", func(t *testing.T) {
		p := r.openIn(t, "namespaces/page-web")
		c.create(t, build.SubNamespace("page-web", "page-new"))
		p.Until("the news", promptly, `!document.getElementById("w:news").hidden`)
		c.waitForUsers(t, "page-new") // the news may be of the SubNamespace alone
		p.Follow(func() { p.ClickText("show") })
		p.Until("the new child", promptly, `document.body.innerText.includes("page-new")`)
	})
	t.Run("WEB-U5 the page of a namespace shows in its place what the user may not read", func(t *testing.T) {
		alice := c.serveWith(t, "page-alice", options{namespace: "page"})
		p, printed := alice.openBetween(t, "namespaces/page-web", "describe page-web")
		want := decode[describe.Namespace](t, printed[0])
		checkDescribed(p, &want)
		p.CheckAxe()
		if text := p.Text(); !strings.Contains(text, "you may not") {
			t.Error(text)
		}
	})
}

// openBetween opens a page, as between does.
func (r *run) openBetween(t *testing.T, page string, commands ...string) (*browser.Page, []string) {
	t.Helper()
	return r.between(t, func() *browser.Page { return r.openIn(t, page) }, commands...)
}

// between opens a page, and returns what the plugin's commands printed before and afterwards. It tries again while that is different:
// other tests change rights of the whole cluster at any time.
func (r *run) between(t *testing.T, open func() *browser.Page, commands ...string) (p *browser.Page, printed []string) {
	t.Helper()
	printAll := func() (all []string) {
		for _, command := range commands {
			all = append(all, r.kubectl(t, r.user, append([]string{"warren", "-o", "json"}, strings.Fields(command)...)...))
		}
		return all
	}
	eventually(t, "the same before and after the page", func() error {
		before := printAll()
		if p != nil {
			p.Close()
		}
		p = open()
		if printed = printAll(); !slices.Equal(before, printed) {
			return fmt.Errorf("before: %q, afterwards: %q", before, printed)
		}
		return nil
	})
	return p, printed
}

// label puts a label on a namespace.
func (c *cluster) label(t testing.TB, namespace, key, value string) {
	t.Helper()
	c.kubectl(t, "admin", "label", "namespace", namespace, key+"="+value)
}

// checkDescribed compares the page of a namespace with what `describe -o json` says.
func checkDescribed(p *browser.Page, want *describe.Namespace) {
	p.Helper()
	facts := p.Facts()
	depth, limits := "none", "not known"
	if want.Depth != nil {
		depth = strconv.Itoa(*want.Depth)
	}
	switch {
	case want.Limits != nil:
		limits = want.Limits.String()
	case want.HasNoLimits():
		limits = "none"
	}
	for term, text := range map[string]string{
		"Type": string(want.Type), "Phase": want.Phase, "Root": orNone(want.Root), "Parent": orNone(want.Parent), "Template": orNone(want.Template),
		"Bound": strconv.FormatBool(want.Bound), "Depth": depth, "Children": orNone(strings.Join(want.Children, " ")),
		"Instances": orNone(strings.Join(want.Instances, " ")), "Cascading deletion": want.Cascading.String(), "Limits": limits,
	} {
		equal(p, term, facts[term], text)
	}
	var conditions [][]string
	for _, condition := range want.Conditions {
		since := ""
		if !condition.LastTransitionTime.IsZero() {
			since = condition.LastTransitionTime.UTC().Format("2006-01-02T15:04:05Z")
		}
		status := string(condition.Status)
		if bad := map[bool]string{true: "True", false: "False"}[condition.Type == "Halted"]; status == bad {
			status += ", a problem"
		}
		conditions = append(conditions, []string{
			condition.Type, condition.Message, status, condition.Reason, since,
		})
		if condition.Status == metav1.ConditionFalse && condition.Message == "" {
			p.Errorf("condition %s says not what to do", condition.Type)
		}
	}
	checkTable(p, "Conditions", conditions)
	var resources [][]string
	for _, resource := range want.Resources {
		from := "a source: its page shows where copies are"
		if resource.From != "" {
			from = "a copy from " + resource.From
		} else if resource.Problem != "" {
			from = "no source: " + resource.Problem
		}
		resources = append(resources, []string{resource.Kind, resource.Name, from, resource.Mode})
	}
	for _, conflict := range want.Conflicts {
		resources = append(resources, []string{conflict.Kind, conflict.Name, fmt.Sprintf("conflict: no copy of %s/%s/%s, because another object has "+
			"that name here. Rename or delete it; then the operator writes the copy.", conflict.From, conflict.Kind, conflict.Name), ""})
	}
	checkTable(p, "Copies and sources", resources)
	for _, inherited := range want.Inherited {
		row := []string{inherited.Kind, inherited.Key, inherited.Value, inherited.From}
		if !slices.ContainsFunc(p.Table("Labels and annotations"), func(r []string) bool { return slices.Equal(r, row) }) {
			p.Errorf("inherited %q is not shown", row)
		}
	}
	var events [][]string
	for _, event := range want.Events {
		events = append(events, []string{event.Time.UTC().Format("2006-01-02T15:04:05Z"), event.Type, event.Reason, event.Object, event.Message})
	}
	checkTable(p, "Events", events)
}

// checkAccess compares the table of rights with what `access -o json` says.
func checkAccess(p *browser.Page, want rights.Access) {
	p.Helper()
	var rows [][]string
	for _, entry := range want.Subjects {
		var lists, via []string
		for _, list := range entry.Lists {
			lists = append(lists, string(list))
		}
		for _, one := range entry.Via {
			via = append(via, one.String())
		}
		held := []string{
			orNone(strings.Join(entry.WithoutSudo, ", ")), orNone(strings.Join(entry.RolesWithSudo(), ", ")), orNone(strings.Join(entry.Namespaces, ", ")),
			strings.Join(via, ""),
		}
		if len(via) == 0 && len(want.Incomplete) > 0 {
			held = slices.Repeat([]string{"not known"}, len(held))
		}
		rows = append(rows, append([]string{entry.Subject.String(), orNone(strings.Join(lists, ", "))}, held...))
	}
	checkTable(p, "Who has rights in the tree of "+want.Tenant, rows)
}

// draws goes to a page until its drawing holds these namespaces: the page is made of what the plugin has read so far.
func (r *run) draws(t *testing.T, p *browser.Page, page string, want ...string) {
	t.Helper()
	eventually(t, "the drawing", func() error {
		p.Go(r.address(page))
		got := browser.Eval[[]string](p, `Array.from(document.querySelectorAll(".drawing .node .name"), (n) => n.textContent)`)
		if !slices.Equal(got, want) {
			return fmt.Errorf("got %q, want %q", got, want)
		}
		return nil
	})
}

func testTenantPage(t *testing.T, c *cluster) {
	tenant := build.Tenant("people").Users("people-alice").Managers("people-mia").Sudoers("people-bob").Limits(7, 3).Object()
	tenant.Spec.Billing = &v1alpha1.Billing{CostCenter: "CC-1", Owner: "finance@example.com"}
	c.newTenant(t, tenant)
	c.grow(t, "people", "people-web")
	c.grow(t, "people-web", "people-db")
	eventually(t, "the count of sub-namespaces", func() error {
		if err := c.Admin().Get(t.Context(), client.ObjectKeyFromObject(tenant), tenant); err != nil || tenant.Status.SubNamespaces != 2 {
			return fmt.Errorf("%d %w", tenant.Status.SubNamespaces, err)
		}
		return nil
	})
	t.Run("WEB-U6 a manager sees lists, limits and billing, and: you may change the lists of LNamespace payments; you may not list "+
		"rolebindings in payments", func(t *testing.T) {
		r := c.serve(t, "people-mia")
		p := r.open("")
		r.draws(t, p, "tenants/people", "people")
		p.CheckAxe()
		facts := p.Facts()
		equal(p, "limit", facts["Sub-namespaces"], "2 of 7")
		equal(p, "depth", facts["Depth"], "at most 3")
		equal(p, "cost center", facts["Cost center"], "CC-1")
		equal(p, "owner", facts["Owner"], "finance@example.com")
		for list, want := range map[string]string{"Users": "User people-alice", "Managers": "User people-mia", "Sudoers": "User people-bob"} {
			got := browser.Eval[string](p, `Array.from(document.querySelectorAll("section")).find((s) => s.querySelector("h2").textContent === %q).querySelector("li").firstChild.textContent.trim()`, list)
			equal(p, list, got, want)
		}
		for _, want := range []string{
			"you may read LNamespace people", "you may change the lists of LNamespace people", "you may not create sub-namespaces in people",
			"you may not list rolebindings in people", "you may not list clusterrolebindings",
		} {
			if text := p.Text(); !strings.Contains(text, want) {
				t.Errorf("%q is not said: %s", want, text)
			}
		}
	})
	t.Run("WEB-U6 a cluster admin sees the drawing of the tree, and no part about a kind that is not served", func(t *testing.T) {
		r := c.serve(t, "admin")
		p := r.open("")
		r.draws(t, p, "tenants/people", "people", "people-web", "people-db")
		p.CheckAxe()
		if text := p.Text(); strings.Contains(text, "Transfers") || strings.Contains(text, "Requests") {
			t.Errorf("parts of kinds that are not served: %s", text)
		}
		equal(p, "what is not read", browser.Eval[int](p, `document.querySelectorAll("#w\\:unread li").length`), 0)
		p.Screenshot("tenant", true)
	})
	t.Run("WEB-U6 a user sees the drawing of the tree, and: you may not read LNamespace payments", func(t *testing.T) {
		r := c.serveWith(t, "people-alice", options{namespace: "people"})
		p := r.open("")
		r.draws(t, p, "tenants/people", "people", "people-web", "people-db")
		p.CheckAxe()
		if text := p.Text(); !strings.Contains(text, "you may not read LNamespace people") {
			t.Error(text)
		}
	})
	t.Run("WEB-U6 the page of a tenant shows which members the operator refuses, and why", func(t *testing.T) {
		c.create(t, build.Namespace("people-robots"))
		r := c.serve(t, "admin")
		c.kubectl(t, "admin", "patch", "lnamespaces", "people", "--type=json", "-p",
			`[{"op":"add","path":"/spec/users/-","value":{"kind":"ServiceAccount","namespace":"people-robots","name":"robot"}}]`)
		c.label(t, "people-robots", v1alpha1.LabelParent, "people") // now its users could act as the ServiceAccount
		p := r.open("tenants/people")
		eventually(t, "the reason", func() error {
			p.Go(r.address("tenants/people"))
			if text := p.Text(); !strings.Contains(text, "AccessReady") || !strings.Contains(text, "lives in the tree of people") {
				return fmt.Errorf("%s", text)
			}
			return nil
		})
	})
}

func testQuestions(t *testing.T, c *cluster) {
	c.newTeam(t, "asked")
	r := c.serve(t, "admin")
	r.open("questions").CheckAxe()
	t.Run("WEB-U7 who-can by the form, and the address of that page, have the facts of the command's answer with -o json", func(t *testing.T) {
		ask := func() *browser.Page {
			p := r.openIn(t, "questions")
			p.Fill("Verb", "get")
			p.Fill("Resource", "secrets")
			p.Fill("Namespace", "asked-web")
			p.Follow(func() { p.ClickText("Ask") })
			return p
		}
		check := func(p *browser.Page, want rights.WhoCan) {
			var rows [][]string
			for _, holder := range want.Subjects {
				how := "without"
				if holder.Sudo {
					how = "with sudo of " + holder.Tenant
				}
				rows = append(rows, []string{holder.Subject.String(), how, viaText(holder.Via)})
			}
			checkTable(p, "Who can get secrets in asked-web", rows)
			equal(p, "command", browser.Eval[string](p, `document.querySelector(".command code").textContent`), "kubectl warren who-can get secrets -n asked-web")
		}
		p, printed := r.between(t, ask, "who-can get secrets -n asked-web")
		check(p, decode[rights.WhoCan](t, printed[0]))
		p.CheckAxe()
		address := strings.TrimPrefix(browser.Eval[string](p, `location.href`), r.address(""))
		again, printed := r.openBetween(t, address, "who-can get secrets -n asked-web")
		check(again, decode[rights.WhoCan](t, printed[0]))
	})
	t.Run("WEB-U7 why by the form, and the address of that page, have the facts of the command's answer with -o json; the command that is "+
		"shown works", func(t *testing.T) {
		p := r.openIn(t, "questions")
		p.Fill("Verb", "get")
		p.Fill("Resource", "secrets")
		p.Fill("Namespace", "asked-web")
		p.Fill("User", "asked-bob")
		p.Follow(func() { p.ClickText("Ask") })
		want := decode[rights.Why](t, c.kubectl(t, "admin", "warren", "why", "asked-bob", "get", "secrets", "-n", "asked-web", "-o", "json"))
		check := func(p *browser.Page) {
			var rows [][]string
			for _, one := range want.Cases {
				how, as := "without sudo", ""
				if one.Sudo {
					how = "with sudo of " + one.Tenant
				}
				if one.As != nil {
					as = one.As.User + " in " + strings.Join(one.As.Groups, ", ")
				}
				rows = append(rows, []string{how, string(one.Allowed), as, viaText(one.Via), one.Note})
			}
			checkTable(p, "Answer", rows)
			equal(p, "in words", browser.Eval[string](p, `document.querySelector(".answer").textContent`), want.Describe())
		}
		check(p)
		p.CheckAxe()
		check(r.openIn(t, strings.TrimPrefix(browser.Eval[string](p, `location.href`), r.address(""))))
		// The command that the page shows works.
		c.shell(t, "admin", browser.Eval[string](p, `document.querySelector(".command code").textContent`))
	})
	t.Run("WEB-U7 the page of a question that has no answer names the cause", func(t *testing.T) {
		p := r.openIn(t, "questions?verb=get&resource=no-such")
		if text := p.Text(); !strings.Contains(text, "no-such") {
			t.Error(text)
		}
		p.CheckAxe()
	})
}

func viaText(all []rights.Via) string {
	text := ""
	for _, one := range all {
		text += one.String()
	}
	return text
}

func testReach(t *testing.T, c *cluster) {
	c.newTeam(t, "reach")
	c.grow(t, "reach", "reach-own")
	c.grow(t, "reach", "reach-other")
	c.label(t, "reach-other", "stage", "prod")
	c.grow(t, "reach", "reach-full")
	c.create(t, build.Secret("reach-own", "key", "own"), quota("reach-full", "count/secrets", "0"))
	// The API server checks against its cached copies of quotas, which may lack one that was just stored.
	eventually(t, "the quota in force", func() error {
		err := c.Admin().Create(t.Context(), build.Secret("reach-full", "probe", ""), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "exceeded quota") {
			return fmt.Errorf("a Secret beyond it: %v", err)
		}
		return nil
	})
	source := build.Annotated(build.Source(build.Secret("reach", "key", "source"), "update"), v1alpha1.AnnotationSelect, "stage!=prod")
	c.create(t, source)
	r := c.serve(t, "admin")
	p := r.open("")
	eventually(t, "the copies", func() error {
		p.Go(r.address("objects/reach/Secret/key"))
		want := map[string]string{"reach-web": "copy", "reach-db": "copy", "reach-own": "conflict", "reach-other": "unselected", "reach-full": "waiting"}
		for _, row := range p.Table("Namespaces that it could reach") {
			if want[row[0]] != row[1] {
				return fmt.Errorf("%q", row)
			}
			delete(want, row[0])
		}
		if len(want) > 0 {
			return fmt.Errorf("%v are not shown: %s", want, p.Text())
		}
		return nil
	})
	p.CheckAxe()
	p.Screenshot("object", true)
}

func testHistory(t *testing.T, c *cluster) {
	c.newTeam(t, "uses")
	c.create(t, build.Secret("uses-web", "db", "value"))
	c.kubectl(t, "uses-bob", "sudo", "--tenant", "uses", "--reason", "INC-7", "get", "secret", "db", "-n", "uses-web")
	c.kubectl(t, "admin", "patch", "lnamespaces", "uses", "--type=json", "-p", `[{"op":"add","path":"/spec/sudoers/-","value":{"kind":"User","name":"nora"}}]`)
	nora := c.Sudo("nora", "uses")
	eventually(t, "nora's sudo", func() error { // else the operator may see both changes at once, as none
		return nora.Get(t.Context(), client.ObjectKey{Namespace: "uses-web", Name: "db"}, &corev1.Secret{})
	})
	c.kubectl(t, "admin", "patch", "lnamespaces", "uses", "--type=json", "-p", `[{"op":"remove","path":"/spec/sudoers/1"}]`)
	t.Run("WEB-U9 with an audit log, the sudo history has the rows that sudo.jq of the audit guide prints", func(t *testing.T) {
		p := c.serve(t, "admin", "--audit-log", c.AuditLog()).open("tenants/uses")
		p.CheckAxe()
		rows := p.Table("Uses of sudo")
		want := slices.ContainsFunc(rows, func(row []string) bool {
			return row[1] == "uses-bob" && row[2] == "get" && strings.HasPrefix(row[3], "/api/v1/namespaces/uses-web/secrets/db") && row[4] == "200" && row[5] == "INC-7"
		})
		if !want {
			t.Errorf("%q", rows)
		}
	})
	t.Run("WEB-U9 with Events alone, the page of a tenant has changes of list sudoers", func(t *testing.T) {
		r := c.serve(t, "admin")
		p := r.open("")
		eventually(t, "the Event", func() error {
			p.Go(r.address("tenants/uses"))
			if rows := p.Table("Events"); !slices.ContainsFunc(rows, func(row []string) bool { return strings.Contains(row[4], "sudoers: removed User nora") }) {
				return fmt.Errorf("%q", rows)
			}
			return nil
		})
		if text := p.Text(); !strings.Contains(text, "name it with --audit-log") {
			t.Error(text)
		}
	})
	t.Run("WEB-U9 with neither audit log nor Events, the page of a tenant has what is missing", func(t *testing.T) {
		p := c.serve(t, "uses-mia").open("tenants/uses")
		for _, want := range []string{"name it with --audit-log", "you may not list Events in default"} {
			if text := p.Text(); !strings.Contains(text, want) {
				t.Error(text)
			}
		}
	})
	t.Run("WEB-U9 an audit log that can't be read is named", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "none")
		p := c.serve(t, "admin", "--audit-log", file).open("tenants/uses")
		if text := p.Text(); !strings.Contains(text, "the audit log can't be read") {
			t.Error(text)
		}
		_ = os.Remove(file)
	})
}
