package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/warren-tenancy/warren/test/facts"
)

func TestPrintedTables(t *testing.T) {
	records := []facts.Record{
		{Kind: facts.Suite, Name: "trees", CPU: 10, Wall: 60}, {Kind: facts.Suite, Name: "trees", CPU: 30, Wall: 50},
		{Kind: facts.Suite, Name: "guard", CPU: 50, Wall: 20},
		{Kind: facts.Job, Name: "lane 1", CPU: 120, Wall: 90},
		{Kind: facts.Plane, Name: "trees.test", CPU: 4, Wall: 8}, {Kind: facts.Plane, Name: "guard.test", CPU: 6, Wall: 12},
		{Kind: facts.World, Name: "trees.test", CPU: 7, Wall: 15}, {Kind: facts.Life, Name: "trees.test", Case: "SUB-D7", CPU: 30, Wall: 50},
	}
	cases := []testCase{{"trees SUB-D4", 3, 1}, {"guard SEC-G1", 12, 2}}
	var out bytes.Buffer
	printCosts(&out, records)
	printPlanes(&out, records)
	printCases(&out, cases)
	want := `              suite  CPU s  wall s  processes
              guard     50      20          1
              trees     40      60          2
                                             
                job  CPU s  wall s           
             lane 1    120      90           
           all jobs    120                   
                                             
  control planes of  CPU s  wall s     starts
         guard.test      6      12          1
         trees.test      4       8          1

2 control planes started: 10 CPU-seconds, 10 s each until ready. With manifests and policies in force, 1 of them: 7 CPU-seconds, 15 s each.
From start to end, etcd, API servers and controller managers used 30 CPU-seconds in 50 s.
All jobs used 120 CPU-seconds; suites used 90 of them, and compilers, linkers and unit tests the rest.

the costliest control planes, and what ran when they ended
    30 CPU s    50 s  trees SUB-D7

the slowest of 2 cases and tests
    12 s  guard SEC-G1
     3 s  trees SUB-D4
tried 2 times: guard SEC-G1
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestReadCases(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"unit.json": `{"Action":"run","Package":"a/b","Test":"TestX"}
{"Action":"pass","Package":"a/b","Test":"TestX/PROP-P1","Elapsed":1}
{"Action":"pass","Package":"a/b","Test":"TestX","Elapsed":2.5}
{"Action":"pass","Package":"a/b","Elapsed":3}
`,
		"suites-1.json": `[{"SuiteDescription":"trees","SpecReports":[
{"State":"passed","LeafNodeType":"It","LeafNodeText":"SUB-D4 deletes","ContainerHierarchyTexts":["deletion"],
"RunTime":1500000000,"NumAttempts":2},
{"State":"passed","LeafNodeType":"BeforeSuite","RunTime":1000000000,"NumAttempts":1},
{"State":"skipped","LeafNodeType":"It","LeafNodeText":"SUB-D5"}]}]`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readCases(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []testCase{{"trees deletion SUB-D4 deletes", 1.5, 2}, {"trees BeforeSuite", 1, 1}, {"b TestX", 2.5, 1}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(testCase{})); diff != "" {
		t.Error(diff)
	}
}

func TestJobsAreRecordedWithTheirExitCode(t *testing.T) {
	file := filepath.Join(t.TempDir(), "facts.jsonl")
	t.Setenv(facts.FileEnv, file)
	if code := runJob("lane 1", []string{"sh", "-c", "exit 3"}); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	records, err := readRecords(file)
	if err != nil || len(records) != 1 || records[0].Kind != facts.Job || records[0].Name != "lane 1" {
		t.Errorf("records %v, error %v", records, err)
	}
}
