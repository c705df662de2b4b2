package manifests

import (
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/warren-tenancy/warren/internal/configfile"
)

// The hint warns of exactly the selectors that the operator can't parse. The API server uses Go's regular expressions, so the test can,
// too.
func TestSelectorsOfTheHint(t *testing.T) {
	text := string(hintsFor(configfile.Default()).Text)
	_, pattern, found := strings.Cut(text, "variables.select.matches(r'")
	pattern, _, closed := strings.Cut(pattern, "')")
	if !found || !closed {
		t.Fatal("the hint has no pattern")
	}
	hint := regexp.MustCompile(pattern)
	t.Run("PROP-E3 the hint's pattern and the operator's parser "+
		"judge the same selectors alike", func(t *testing.T) { compareWithParser(t, hint) })
}

func compareWithParser(t *testing.T, hint *regexp.Regexp) {
	t.Helper()
	for _, selector := range []string{
		"", " ", "a", "!a", "! a", "a=b", "a = b", "a==b", "a!=b", "a=", "env=prod,tier!=web", "env in (prod, dev)",
		"env notin(prod)", "env in (prod,)",
		"!team-b.tree.tenancy.warren.dev/depth", "team-b.tree.tenancy.warren.dev/depth=1", "x>5", "x < 5", "a.b/c_d,e", " a , b ",
		"a=b=c", "a,", ",a", "a b", "env=", "=b", "env=prod;tier=web", "a/b/c", "env in prod", "env in ()", "env in (a", "-a",
		"a-", "a=-b", "x>y",
		"env=prod tier=web", "a=!b", "UPPER.example/x", "{}", "matchLabels: {a: b}", "env~prod", strings.Repeat("a", 64),
		"a=" + strings.Repeat("b", 64),
	} {
		_, err := labels.Parse(selector)
		if hint.MatchString(selector) != (err == nil) {
			t.Errorf("%q: the hint accepts it: %t; the operator's answer is %v", selector, hint.MatchString(selector), err)
		}
	}
}
