package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWords(t *testing.T) {
	got, err := splitWords(`patch lns shop -p '{"a": [1, 2]}'  -o name`)
	want := []string{"patch", "lns", "shop", "-p", `{"a": [1, 2]}`, "-o", "name"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if _, err := splitWords("it's"); err == nil {
		t.Error("an open quote was accepted")
	}
}

func TestManifestThatIsNotNamed(t *testing.T) {
	p := &player{root: t.TempDir()}
	if err := p.showFile([]string{"apply", "-f"}); err == nil || err.Error() != "the command ends with -f: name a file" {
		t.Error(err)
	}
}

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		want   want
		answer string
		code   int
		ok     bool
	}{
		"as expected":                {wantPrint("made"), "it is made", 0, true},
		"allowed, but says nothing":  {wantPrint("made"), "", 0, false},
		"failed with the right word": {wantPrint("made"), "not made", 1, false},
		"refused":                    {wantRefusal("forbidden"), "forbidden: no", 1, true},
		"refused for other reasons":  {wantRefusal("forbidden"), "no such host", 1, false},
		"allowed by mistake":         {wantRefusal(), "here you are", 0, false},
		"says too much":              {wantPrint("a").without("b"), "a b", 0, false},
		"did not run":                {wantRefusal(), "no kubectl", -1, false},
	} {
		if wrong := c.want.checkAnswer(c.answer, c.code); (wrong == "") != c.ok {
			t.Errorf("%s: %q", name, wrong)
		}
	}
}

func TestScriptCanBeRead(t *testing.T) {
	for _, scene := range append(fullStory(), billsWait()) {
		for _, step := range scene.steps {
			args, err := splitWords(step.command)
			if err != nil {
				t.Error(err)
			}
			for i, arg := range args {
				if arg == "-f" {
					if _, err := os.Stat(filepath.Join("..", "..", args[i+1])); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
}

func TestReport(t *testing.T) {
	root := t.TempDir()
	for want, failure := range map[string]error{`"pass"`: nil, `"fail"`: os.ErrDeadlineExceeded} {
		if err := writeReport(root, "away", failure); err != nil {
			t.Fatal(err)
		}
		line, err := os.ReadFile(filepath.Join(root, ".reports", "demo-away.json"))
		if err != nil || !strings.Contains(string(line), `"Action":`+want) || !strings.Contains(string(line),
			`"Test":"BILL-51 make demo with the warehouse away"`) {
			t.Errorf("%s, %v", line, err)
		}
	}
}
