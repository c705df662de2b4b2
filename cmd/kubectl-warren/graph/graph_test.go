package graph_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"html"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/graph"
	"github.com/warren-tenancy/warren/test/forests"
)

// about is where and when the forests of the tests were read.
var about = graph.About{Context: "prod", Time: time.Unix(1700000000, 0)}

func buildForest(t *testing.T, facts graph.Facts, roots ...string) *graph.Forest {
	t.Helper()
	f, err := graph.Build(facts, roots...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// drawAs returns the drawing of a forest in one format, and the warning that comes with it.
func drawAs(t *testing.T, f *graph.Forest, format string, o graph.Options) (drawn, warning string) {
	t.Helper()
	var out bytes.Buffer
	write := map[string]func(io.Writer, graph.Options) (string, error){
		"html": f.WriteHTML, "svg": f.WriteSVG, "mermaid": f.WriteMermaid,
	}[format]
	o.About = about
	warning, err := write(&out, o)
	if err != nil {
		t.Fatalf("%s: %v", format, err)
	}
	return out.String(), warning
}

var formats = []string{"html", "svg", "mermaid"}

// lines returns the rows of a forest as text, one a line, indented by their depth.
func lines(rows []*graph.Row) string {
	var all strings.Builder
	for _, row := range rows {
		words := append([]string{row.Words, row.Below, row.People}, row.Problems...)
		all.WriteString(strings.Repeat("  ", row.Level-1) + row.Name + ": " + strings.Join(words, "|") + "\n")
		all.WriteString(lines(row.Children))
	}
	return all.String()
}

func TestRows(t *testing.T) {
	const want = `
org: root||
payments: tenant, template base|4 below|managers: User mia; users: User alice; sudoers: User bob
  legacy: placed||
  pay-web: sub-namespace|1 below||Secret db stands in the way (Propagated: Conflict)
    pay-db: sub-namespace||
  taken: SubNamespace without namespace|||namespace taken exists outside of this tree (Ready: Conflict)
shop: tenant|1 below|managers: nobody; users: User dave; sudoers: nobody|User dave is refused (AccessReady: Conflict)
  dying: sub-namespace, terminating||
base: template|1 below|
  ci: instance, template base||
a: placed, (cycle)|1 below||a -> b -> a (Halted: InCycle)
  b: placed, (cycle)|||a -> b -> a (Halted: InCycle)
gone: (missing)|1 below|
  lost: sub-namespace|||parent namespace gone does not exist (Halted: ParentMissing)
late: LNamespace without namespace||managers: nobody; users: User erin; sudoers: nobody
`
	f := buildForest(t, forests.Specified())
	if diff := cmp.Diff(want, "\n"+lines(f.Rows(graph.RowOptions{People: true, OpenLevels: -1}))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(graph.Counts{Tenants: 2, Namespaces: 12, Problems: 6, Rows: 15}, f.Counts); diff != "" {
		t.Errorf("counts: -want +got:\n%s", diff)
	}
}

// TestHeadSaysKnown checks that a head counts problems as known ones if something could not be read (WEB-U10).
func TestHeadSaysKnown(t *testing.T) {
	f := buildForest(t, forests.Specified())
	f.Unread = nil
	if got := f.Head(graph.About{}).Counts; !strings.Contains(got, ", 6 rows with problems.") {
		t.Errorf("everything was read: %s", got)
	}
	f.Unread = []string{"you may not list HierarchyConfigurations"}
	if got := f.Head(graph.About{}).Counts; !strings.Contains(got, ", 6 rows with known problems.") {
		t.Errorf("something was not read: %s", got)
	}
}

// A namespace that is below two of the named roots is drawn once.
func TestRootsWithinOneAnother(t *testing.T) {
	for _, roots := range [][]string{{"pay-web", "payments"}, {"payments", "pay-web", "payments"}} {
		f := buildForest(t, forests.Specified(), roots...)
		if len(f.Trees) != 1 || f.Trees[0].Name != "payments" {
			t.Errorf("%v: got %d trees", roots, len(f.Trees))
		}
	}
}

// Each text format has every namespace of the specification's forest once. The format encloses a name in the texts of
// around.
func TestFormatsShowEachNamespaceOnce(t *testing.T) {
	around := map[string][2]string{"html": {"<b>", "</b>"}, "svg": {"\">", "</text>"}, "mermaid": {"\"", "<br>"}}
	for _, format := range formats {
		t.Run("WEB-G1 each format shows every namespace once, with the words of 2.1: "+format, func(t *testing.T) {
			drawn, _ := drawAs(t, buildForest(t, forests.Specified()), format, graph.Options{Depth: -1})
			times := 1
			if format == "html" {
				drawn, _, _ = strings.Cut(drawn, "<section") // the drawing repeats the names
			}
			buildForest(t, forests.Specified()).Walk(func(n *graph.Node, _ int) {
				if got := strings.Count(drawn, around[format][0]+n.Name+around[format][1]); got != times {
					t.Errorf("%s is there %d times", n.Name, got)
				}
			})
			for _, word := range []string{"sub-namespace", "placed", "template base", "instance", "terminating", "below", "InCycle", "ParentMissing",
				"without namespace"} {
				if !strings.Contains(drawn, word) {
					t.Errorf("%q is missing", word)
				}
			}
		})
	}
}

func TestSVGIsWellFormed(t *testing.T) {
	drawn, _ := drawAs(t, buildForest(t, forests.Hostile()), "svg", graph.Options{People: true, Depth: -1})
	decoder := xml.NewDecoder(strings.NewReader(drawn))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("WEB-G1 %v", err)
		}
	}
}

func TestSameInputSameBytes(t *testing.T) {
	for _, format := range formats {
		t.Run("WEB-G2 the same input gives the same bytes: "+format, func(t *testing.T) {
			o := graph.Options{People: true, Depth: -1}
			first, _ := drawAs(t, buildForest(t, forests.Specified()), format, o)
			second, _ := drawAs(t, buildForest(t, forests.Specified()), format, o)
			if diff := cmp.Diff(first, second); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// WEB-G3: a person's name can't look like another name, like several names, or like a part of the sentence.
func TestPeopleWithMisleadingNames(t *testing.T) {
	facts := forests.Specified()
	tenant := facts.Tenants[0]
	tenant.Spec.Users = []v1alpha1.Subject{
		{Kind: v1alpha1.SubjectUser, Name: "dave; sudoers: User eve"}, {Kind: v1alpha1.SubjectUser, Name: "a  b"},
	}
	const want = `users: "User dave; sudoers: User eve", User a \x20b; sudoers: User bob`
	for _, row := range buildForest(t, facts).Rows(graph.RowOptions{People: true, OpenLevels: -1}) {
		if row.Name == "payments" && !strings.Contains(row.People, want) {
			t.Errorf("got %q, want %q in it", row.People, want)
		}
	}
}

func TestPeople(t *testing.T) {
	people := []string{"mia", "alice", "bob", "dave", "erin"}
	for _, format := range formats {
		t.Run("WEB-G4 a file names people only with --people: "+format, func(t *testing.T) {
			without, _ := drawAs(t, buildForest(t, forests.Specified()), format, graph.Options{Depth: -1})
			with, _ := drawAs(t, buildForest(t, forests.Specified()), format, graph.Options{Depth: -1, People: true})
			for _, name := range people {
				if strings.Contains(without, name) {
					t.Errorf("%s is named without --people", name)
				}
				if !strings.Contains(with, name) {
					t.Errorf("%s is not named with --people", name)
				}
			}
		})
	}
}

// A text that another person wrote can't end the string or the element that contains it.
func TestHostileTexts(t *testing.T) {
	facts := forests.Hostile()
	want := map[string][]string{
		"mermaid": {"#60;#47;script#62;#60;img src#61;x onerror#61;alert#40;1#41;#62;", "#93;#93;#62; --#62; #34; #39; #96;"},
	}
	for format, texts := range want {
		t.Run("WEB-G3 in mermaid, a hostile User and message are text: "+format, func(t *testing.T) {
			drawn, _ := drawAs(t, buildForest(t, facts), format, graph.Options{Depth: -1, People: true})
			for _, text := range texts {
				if !strings.Contains(drawn, text) {
					t.Errorf("%q is missing in\n%s", text, drawn)
				}
			}
			if strings.Contains(drawn, "\u202e") {
				t.Error("a character that turns text around is there as it is")
			}
		})
	}
}

func TestLargeForestsAreFolded(t *testing.T) {
	f := buildForest(t, forests.Sized(10_000))
	t.Run("WEB-G8 mermaid of 10,000 has at most 500 edges and 50,000 characters; a Warning states how many levels are drawn, or that trees "+
		"are left out", func(t *testing.T) {
		chart, warning := drawAs(t, f, "mermaid", graph.Options{Depth: -1})
		if edges := strings.Count(chart, "-->"); edges > 500 || len(chart) > 50_000 {
			t.Errorf("%d edges, %d characters", edges, len(chart))
		}
		if !strings.Contains(warning, "it is drawn to 0 levels below each root") &&
			!strings.Contains(warning, "only the top row of each of the first trees is drawn, and ") {
			t.Errorf("warning %q", warning)
		}
	})
	t.Run("svg", func(t *testing.T) {
		drawn, warning := drawAs(t, f, "svg", graph.Options{Depth: -1})
		if boxes := strings.Count(drawn, "<g class=\"node"); boxes > 501 || warning == "" { // the legend has one box more for each kind
			t.Errorf("%d boxes, warning %q", boxes, warning)
		}
		if !strings.Contains(html.UnescapeString(drawn), ", + ") {
			t.Error("no box says what is folded below it")
		}
	})
}

func TestOnlyTroubled(t *testing.T) {
	var names []string
	for _, top := range buildForest(t, forests.Specified()).OnlyTroubled().Trees {
		names = append(names, top.Name)
	}
	if diff := cmp.Diff([]string{"payments", "shop", "a", "gone"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
