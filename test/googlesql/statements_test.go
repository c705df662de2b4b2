package googlesql_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	sql "github.com/goccy/go-googlesql"
)

// statement is an SQL statement of testdata/statements.sql, which internal/billing keeps up to date.
type statement struct{ name, text string }

func statements(t *testing.T) (found []statement) {
	t.Helper()
	text, err := os.ReadFile("testdata/statements.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(text), "\n-- ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		found = append(found, statement{name, strings.TrimSuffix(strings.TrimSpace(body), ";")})
	}
	if len(found) < 10 {
		t.Fatalf("%d statements: is the file whole?", len(found))
	}
	return found
}

// created are the names of what statements create.
var created = map[string]string{"table": "tenant_billing", "runs": "tenant_billing_runs", "view": "tenant_billing_periods"}

// ledger is an engine that knows the tables of the ledger.
func ledger(t *testing.T, all []statement) *engine {
	t.Helper()
	e := newEngine(t)
	str, number := must[sql.Googlesql_TypeNode](t)(e.types.GetString()), must[sql.Googlesql_TypeNode](t)(e.types.GetInt64())
	e.add("COLUMNS", []column{{"table_name", str}, {"column_name", str}, {"data_type", str}, {"is_nullable", str}, {"column_default", str},
		{"ordinal_position", number}}, e.schema)
	e.add("TABLE_OPTIONS", []column{{"table_name", str}, {"option_name", str}, {"option_type", str}, {"option_value", str}}, e.schema)
	for _, part := range []string{"table", "runs", "view"} {
		for _, s := range all {
			if s.name != part {
				continue
			}
			if err := e.create(created[part], s.text); err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
		}
	}
	return e
}

func TestStatements(t *testing.T) {
	all := statements(t)
	e := ledger(t, all)
	for _, s := range all {
		t.Run("BILL-25 go-googlesql finds no error in the BigQuery statements of Warren: "+s.name, func(t *testing.T) {
			if _, err := e.analyse(s.text); err != nil {
				t.Errorf("%v\n%s", err, s.text)
			}
		})
	}
}

var sqlBlock = regexp.MustCompile("(?s)```sql ?(\\w*)\n(.*?)```")

func TestGuide(t *testing.T) {
	e := ledger(t, statements(t))
	if err := e.create("focus",
		"CREATE TABLE focus (x_Cluster STRING, x_Namespace STRING, ChargePeriodStart TIMESTAMP, EffectiveCost NUMERIC)"); err != nil {
		t.Fatal(err)
	}
	if err := e.create("gcp_billing_export_resource_v1_X", "CREATE TABLE gcp_billing_export_resource_v1_X (usage_start_time TIMESTAMP, "+
		"currency STRING, cost FLOAT64, "+
		"project STRUCT<id STRING>, labels ARRAY<STRUCT<key STRING, value STRING>>, credits ARRAY<STRUCT<amount FLOAT64>>, _PARTITIONTIME "+
		"TIMESTAMP)"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/guides/billing.md")
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, section := range strings.Split(string(text), "\n### ")[1:] {
		heading, body, _ := strings.Cut(section, "\n")
		query := ""
		for _, block := range sqlBlock.FindAllStringSubmatch(body, -1) {
			if block[1] == "" || block[1] == "bigquery" {
				query = block[2]
			}
		}
		if query == "" {
			continue
		}
		asked++
		t.Run("BILL-25 go-googlesql finds no error in the BigQuery queries of the guide: "+heading, func(t *testing.T) {
			if _, err := e.analyse(query); err != nil {
				t.Errorf("%v\n%s", err, query)
			}
		})
	}
	if asked < 6 {
		t.Errorf("%d questions for BigQuery, want at least 6", asked)
	}
}

// TestMistakes checks that the engine refuses typical mistakes.
func TestMistakes(t *testing.T) {
	all := statements(t)
	e := ledger(t, all)
	texts := map[string]string{}
	for _, s := range all {
		texts[s.name] = s.text
	}
	for name, c := range map[string]struct{ statement, old, new string }{
		"a column that isn't there":       {"open", "tenant_uid", "tenant_id"},
		"text into a number":              {"insert", "CAST(JSON_VALUE(r, '$.generation') AS INT64)", "JSON_VALUE(r, '$.generation')"},
		"text into JSON":                  {"insert", "PARSE_JSON(JSON_QUERY(r, '$.labels'))", "JSON_QUERY(r, '$.labels')"},
		"an upsert, which BigQuery lacks": {"startRun", "CURRENT_TIMESTAMP())", "CURRENT_TIMESTAMP()) ON CONFLICT (run_id) DO NOTHING"},
		"a function of PostgreSQL's":      {"moveWatermark", "CURRENT_TIMESTAMP()", "clock_timestamp()"},
		"a column too few":                {"giveReason", ", reason, recorded_at)", ", reason)"},
	} {
		t.Run("BILL-25 go-googlesql refuses statements with deliberate errors: "+name, func(t *testing.T) {
			wrong := strings.Replace(texts[c.statement], c.old, c.new, 1)
			if wrong == texts[c.statement] {
				t.Fatal(fmt.Errorf("%s has no %q", c.statement, c.old))
			}
			if _, err := e.analyse(wrong); err == nil {
				t.Errorf("it is taken:\n%s", wrong)
			}
		})
	}
}
