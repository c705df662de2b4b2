package main

import (
	"strings"
	"testing"

	"github.com/warren-tenancy/warren/hack/cases"
)

func TestPageOf(t *testing.T) {
	tested := []cases.Case{{Number: "ABC-D4", Sentence: "deletes", File: "a/x_test.go"}, {Number: "ABC-D4", File: "b/y_test.go"},
		{Number: "ABC-D12", Sentence: "keeps", File: "b/y_test.go"}, {Number: "XYZ-D1", File: "b/y_test.go"}}
	long := cases.Case{Number: "ABC-D5", Sentence: strings.Repeat("word ", longestSentence+1)}
	const whole = "# ABC\n{{cases \"ABC-D1 to ABC-D9\"}}\n\n{{cases \"ABC-D12\"}}\n"
	for name, c := range map[string]struct {
		text   string
		tested []cases.Case
		want   string // an error; "" for the page below
	}{
		"whole":       {whole, tested, ""},
		"lacks one":   {`{{cases "ABC-D12"}}`, tested, "case ABC-D4 of a/x_test.go is in 0 tables"},
		"has twice":   {whole + `{{cases "ABC-D"}}`, tested, "case ABC-D4 of a/x_test.go is in 2 tables"},
		"no test":     {whole + `{{cases "ABC-E"}}`, tested, "no test bears a number of ABC-E"},
		"no sentence": {whole, append(tested, cases.Case{Number: "ABC-D6", File: "z_test.go"}), "no name of a test with ABC-D6"},
		"long":        {whole, append(tested, long), "has more than 30 words"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := pageOf("abc.tmpl", c.text, c.tested)
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || c.want == "" && err != nil {
				t.Errorf("error %v, want %q", err, c.want)
			}
			const page = "<!-- Written by `make docs` from abc.tmpl and from the names of the tests. DO NOT EDIT. -->\n# ABC\n" +
				"| case | what happens | test |\n|---|---|---|\n| ABC-D4 | deletes | [x_test.go](../../a/x_test.go) |\n\n" +
				"| case | what happens | test |\n|---|---|---|\n| ABC-D12 | keeps | [y_test.go](../../b/y_test.go) |\n"
			if c.want == "" && string(got) != page {
				t.Errorf("page:\n%s", got)
			}
		})
	}
}
