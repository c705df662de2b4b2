package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPageOf(t *testing.T) {
	text := `# Page
| ID | given |
|---|---|
| SUB-D4 | one |
| SUB-D4 | again |
| SUB-D5 | 300 times (` + longRun + `; 24 in every run) |
| ACC-R10b | with a letter, and SUB-X1 in its text |
text ABC-A1 | in no row |
### 2.2 Facts (all verified)
| SEC-F1 | no case |
#### 2.3 What is asked
| SEC-A1 | case |
`
	want := page{name: "sub", cases: []string{"ACC-R10b", "SEC-A1", "SUB-D4", "SUB-D5"}, long: []string{"SUB-D5"}}
	if diff := cmp.Diff(want, pageOf("sub", text), cmp.AllowUnexported(page{})); diff != "" {
		t.Errorf("cases (-want +got):\n%s", diff)
	}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("sub.md", "## 3. Cases\n| ABC-A1 | |\n| ABC-A2 | |\n| ABC-A3 | |\n| ABC-A4 | |\n| ABC-A5 | |\n")
	unit := write("unit.json", `{"Action":"run","Test":"TestPlan/ABC-A1_and_ABC-A2"}
{"Action":"pass","Test":"TestPlan/ABC-A1_and_ABC-A2"}
{"Action":"skip","Test":"TestPlan/ABC-A4"}
{"Action":"fail","Test":"TestPlan/ABC-A2_in_another_way"}
{"Action":"pass","Package":"p"}
`)
	suite := write("integration.json", `[{"SpecReports":[
{"State":"passed","ContainerHierarchyTexts":["ABC-A3"],"LeafNodeText":"is made"},
{"State":"pending","ContainerHierarchyTexts":[],"LeafNodeText":"ABC-A4 waits"},
{"State":"passed","ContainerHierarchyTexts":null,"LeafNodeText":"SUB-Z9 is unknown"}]}]`)

	var out strings.Builder
	if err := run(dir, []string{unit, suite}, false, &out); err != nil {
		t.Fatal(err)
	}
	want := `sub              2 of   5 passed; without: ABC-A2 ABC-A4 ABC-A5
in all 2 of 5
failed: ABC-A2
in names of tests, but no case: SUB-Z9
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}

	write("sub.md", "| ABC-A1 | ("+longRun+") |\n| ABC-A3 | |\n")
	out.Reset()
	if err := errors.Join(run(dir, []string{unit, suite}, false, &out), os.Mkdir(filepath.Join(dir, "long"), 0o700),
		run(dir, []string{suite, write("long/unit.json", `{"Action":"pass","Test":"TestPlan/ABC-A1"}`)}, false, &out)); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "1 of   2 passed; without: ABC-A1") || !strings.Contains(got, "2 of   2 passed") {
		t.Errorf("a case that only a long run shows: %s", got)
	}

	if err := run(dir, []string{write("cut.json", `{"Action":`)}, false, &out); err == nil {
		t.Error("a report that is cut off passes")
	}
}

func TestEnforce(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"README.md": "Shown by `make test-ui`: ABC-A2.\nABC-A1 is no excuse.\n",
		"sub.md":    "| ABC-A1 | |\n| ABC-A2 | |\n| ABC-A3 | (" + longRun + ") |\n",
		"none.json": `{"Action":"fail","Test":"TestPlan/ABC-A1"}`,
		"all.json":  `{"Action":"pass","Test":"TestPlan/ABC-A1"}`,
		"more.json": `{"Action":"pass","Test":"TestPlan/ABC-A2"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for want, reports := range map[string][]string{
		"": {"all.json"},
		"no test with the number of a case passed: ABC-A1":           {"none.json"},
		"README.md of " + dir + " excuses cases that passed: ABC-A2": {"all.json", "more.json"},
	} {
		for i := range reports {
			reports[i] = filepath.Join(dir, reports[i])
		}
		got := ""
		if err := enforceCases(dir, reports); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
