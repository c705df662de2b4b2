package billing_test

import (
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/warren-tenancy/warren/internal/billing"
)

var sqlBlock = regexp.MustCompile("(?s)```sql ?(\\w*)\n(.*?)```")

// guide returns the SQL of docs/guides/billing.md for an engine, by the heading above each query.
func guide(t *testing.T, engine string) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/guides/billing.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, section := range strings.Split(string(text), "\n### ")[1:] {
		heading, body, _ := strings.Cut(section, "\n")
		for _, block := range sqlBlock.FindAllStringSubmatch(body, -1) {
			if block[1] == "" || block[1] == engine {
				found[heading] = block[2]
			}
		}
	}
	return found
}

// answer returns the result of a query, a line for each row.
func answer(t *testing.T, db *sql.DB, query string) (lines []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		line := strings.TrimSpace(fmt.Sprintln(values...))
		line = strings.NewReplacer("true", "1").Replace(line) // SQLite has no boolean
		lines = append(lines, line)
	}
	return lines
}

func TestGuide(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("BILL-40 the queries of the guide give the right answers on SQLite, PostgreSQL and the fake; "+
			"the hours of a month that has not ended count until now", func(t *testing.T) {
			const acme = "acme-prod/europe-west1/main"
			db := e.open(t)
			store, err := billing.NewStore(db, e.dialect, billing.Options{Table: "tenant_billing", Cluster: acme, MaxRows: 500, MaxBytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Schema().Ensure(t.Context()); err != nil {
				t.Fatal(err)
			}
			day := func(month, day int) time.Time { return time.Date(2026, time.Month(month), day, 0, 0, 0, 0, time.UTC) }
			row := func(namespace, tenant, costCenter string, at time.Time) billing.Event {
				return billing.Event{Cluster: acme, Namespace: namespace, NamespaceUID: "u-" + namespace, Tenant: tenant,
					TenantUID: "t-" + tenant, Generation: 1,
					Op: billing.Set, CostCenter: costCenter, Owner: tenant + "@example.com", EffectiveAt: at}
			}
			// Tenant pay changes its cost center on the 11th. Its namespace pay-web moves to tenant shop on the 21st. Tenant lab has no
			// cost center, and its period began a year before.
			appended(t, store, row("pay", "pay", "4711", day(3, 1)), row("pay-web", "pay", "4711", day(3, 1)), row("pay", "pay", "4712", day(3, 11)),
				row("pay-web", "pay", "4712", day(3, 11)), row("pay-web", "shop", "0815", day(3, 21)),
				row("lab", "lab", "", day(3, 1).AddDate(-1, 0, 0)))
			if err := store.StartRun(t.Context(), billing.Run{ID: "r", StartedAt: day(3, 1), CompleteUntil: day(4, 1)}); err != nil {
				t.Fatal(err)
			}
			instant := map[string]string{"sqlite": "TEXT", "postgres": "timestamptz", "bigquery": "TIMESTAMP"}[e.dialect.Name]
			mustExec(t, db, e.words(`CREATE TABLE focus ("x_Cluster" TEXT, "x_Namespace" TEXT, "ChargePeriodStart" `+instant+
				`, "EffectiveCost" INTEGER)`))
			for _, charge := range []string{"'pay-web', '2026-03-10T23:00:00.000000Z', 1", "'pay-web', '2026-03-11T00:00:00.000000Z', 10",
				"'pay-web', '2026-03-21T00:00:00.000000Z', 100", "'kube-system', '2026-03-21T00:00:00.000000Z', 7"} {
				mustExec(t, db, "INSERT INTO focus VALUES ('"+acme+"', "+charge+")")
			}
			questions := guide(t, e.dialect.Name)
			asked := map[string][]string{
				"Namespace hours of each cost center in a month":                    {"744", "0815 264", "4711 480", "4712 744"},
				"Who held a namespace at an instant":                                {"pay 4712 pay@example.com"},
				"Tenants without a cost center":                                     {"lab lab@example.com 1"},
				"Is the ledger complete?":                                           {acme + " 1"},
				"Cost of each tenant, from a cost export with the columns of FOCUS": {"(no tenant)  7", "pay 4711 1", "pay 4712 10", "shop 0815 100"},
			}
			for heading, want := range asked {
				got := answer(t, db, questions[heading])
				for i := range got {
					got[i] = strings.TrimSuffix(got[i], ".0")
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: %s", heading, diff)
				}
			}
			checkInstants(t, db, questions["Who held a namespace at an instant"])
			checkRunningMonth(t, db, questions["Namespace hours of each cost center in a month"])
			const correct, history = "Correct what was billed", "What was billed to a tenant, and when"
			for range 2 { // the second time changes no answer
				if _, err := db.ExecContext(t.Context(), questions[correct]); err != nil {
					t.Fatal(err)
				}
			}
			var corrected []string
			for _, line := range answer(t, db, strings.Replace(questions[history], "cost_center, owner, valid_from, valid_to, event_id",
				"cost_center, valid_from <= '2026-03-05T00:00:00.000000Z', valid_to >= '2026-03-15T00:00:00.000000Z'", 1)) {
				corrected = append(corrected, strings.NewReplacer("false", "0", "<nil>", "open").Replace(line))
			}
			if diff := cmp.Diff([]string{"pay 4711 1 0", "pay 4799 1 0", "pay 4799 0 1", "pay 4712 0 open", "pay-web 4711 1 0", "pay-web 4799 1 0",
				"pay-web 4799 0 1", "pay-web 4712 0 1"}, corrected); diff != "" {
				t.Errorf("%s: %s", correct, diff)
			}
			delete(questions, correct)
			delete(questions, history)
			const changed = "What changed since the last close"
			got := answer(t, db, strings.ReplaceAll(questions[changed], "2026-04-02", "2000-01-01"))
			got = slices.DeleteFunc(got, func(line string) bool { return strings.HasSuffix(line, " 4799") })
			slices.Sort(got) // all reached the ledger at about the same time
			got = slices.Compact(got)
			if diff := cmp.Diff([]string{"SET lab lab", "SET pay pay 4711", "SET pay pay 4712", "SET pay-web pay 4711", "SET pay-web pay 4712",
				"SET pay-web shop 0815"}, got); diff != "" {
				t.Errorf("%s: %s", changed, diff)
			}
			if got := answer(t, db, strings.ReplaceAll(questions[changed], "2026-04-02", "2999-01-01")); len(got) > 0 {
				t.Errorf("%s, where nothing has changed: %q", changed, got)
			}
			for heading := range asked {
				delete(questions, heading)
			}
			delete(questions, changed)
			delete(questions, "Cost of each cost center on GKE, from Google's export") // only test/googlesql knows arrays, and checks it
			if len(questions) > 0 {
				t.Errorf("questions of the guide that nobody asks here: %v", questions)
			}
		})
	})
}

// checkInstants asks who held namespace pay-web before and in its periods.
func checkInstants(t *testing.T, db *sql.DB, question string) {
	t.Helper()
	t.Run("BILL-32 the query for one time answers with the period that contains it, and with none before the first one", func(t *testing.T) {
		for instant, want := range map[string][]string{
			"2026-02-28T23:59:59.999999Z": nil,
			"2026-03-01T00:00:00.000000Z": {"pay 4711 pay@example.com"},
			"2026-03-11T00:00:00.000000Z": {"pay 4712 pay@example.com"},
			"2026-03-20T23:59:59.999999Z": {"pay 4712 pay@example.com"},
			"2026-03-21T00:00:00.000000Z": {"shop 0815 shop@example.com"},
		} {
			if diff := cmp.Diff(want, answer(t, db, strings.ReplaceAll(question, "2026-03-15T12:00:00.000000Z", instant))); diff != "" {
				t.Errorf("%s: %s", instant, diff)
			}
		}
	})
}

// checkRunningMonth asks for the hours of a month that has not ended. They count until now.
func checkRunningMonth(t *testing.T, db *sql.DB, question string) {
	t.Helper()
	now := time.Now().UTC()
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	for old, day := range map[string]time.Time{"2026-03-01": month, "2026-04-01": month.AddDate(0, 1, 0)} {
		question = strings.ReplaceAll(question, old, day.Format(time.DateOnly))
	}
	want := now.Sub(month).Hours()
	found := false
	for _, line := range answer(t, db, question) {
		center, hours, _ := strings.Cut(line, " ")
		got, err := strconv.ParseFloat(strings.TrimSpace(hours), 64)
		if found = found || center == "4712"; center == "4712" && (err != nil || got < want-1 || got > want+1) {
			t.Errorf("%s, wanted %f hours until now", line, want)
		}
	}
	if !found {
		t.Error("no hours until now")
	}
}

// TestSpecificationHasTheSQLOfTheCode checks the SQL in section 1 of docs/behaviour/billing.md: the tables for two engines, and the view.
func TestSpecificationHasTheSQLOfTheCode(t *testing.T) {
	text, err := os.ReadFile("../../docs/behaviour/billing.md")
	if err != nil {
		t.Fatal(err)
	}
	block := sqlBlock.FindStringSubmatch(string(text))
	if block == nil {
		t.Fatal("docs/behaviour/billing.md has no SQL")
	}
	var code string
	for _, dialect := range []billing.Dialect{billing.SQLite, billing.BigQuery("acme", "finops")} {
		statements, err := dialect.DDL("tenant_billing")
		if err != nil {
			t.Fatal(err)
		}
		code += strings.Join(statements, ";\n")
	}
	code = oneLine(strings.ReplaceAll(code, "`acme`.`finops`.", ""))
	statements := 0
	for statement := range strings.SplitSeq(regexp.MustCompile(`(?m)^--.*$`).ReplaceAllString(block[2], ""), ";") {
		statement = oneLine(strings.ReplaceAll(statement, "{{t}}", "tenant_billing"))
		if statement == "" {
			continue
		}
		if statements++; !strings.Contains(code, statement) {
			t.Errorf("the code has no statement\n%s\namong\n%s", statement, code)
		}
	}
	if statements != 3 {
		t.Errorf("the page has %d statements, and not the tables of SQLite and BigQuery and the view", statements)
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
