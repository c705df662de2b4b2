package graph

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/internal/text"
)

// Row is a node in words: what a drawing shows of it. All text is on one line, and free of characters that change the
// direction of text. Its JSON form is what a live page needs to show the row.
type Row struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Class string `json:"class"`
	// Words describe what the row is, such as "sub-namespace, terminating".
	Words string `json:"words"`
	// Below reports how many rows are below, such as "12 below"; "" where there are none.
	Below string `json:"below"`
	// Hidden reports how many of the rows below have problems, which a folded row hides, such as "1 with a problem"; ""
	// where none have.
	Hidden   string   `json:"hidden"`
	Problems []string `json:"problems"`
	// People are the lists of a tenant in one sentence; "" where there are none, or they are not asked for.
	People string `json:"people"`
	// Level counts from 1; Position counts from 1 among Size rows below one parent.
	Level    int `json:"level"`
	Position int `json:"position"`
	Size     int `json:"size"`
	// Open reports whether the page begins with the rows below unfolded.
	Open     bool   `json:"-"`
	Troubled bool   `json:"troubled"`
	Children []*Row `json:"-"`
}

// RowOptions describe what rows contain, and which of them begin unfolded.
type RowOptions struct {
	People bool
	// OpenLevels is how many levels begin unfolded: 0 shows the first row of each tree. A negative number unfolds all.
	OpenLevels int
}

// Rows returns the rows of the forest, one for each tree, with those below them.
func (f *Forest) Rows(options RowOptions) []*Row { return rowsOf(f.Trees, 1, options) }

func rowsOf(nodes []*Node, level int, options RowOptions) []*Row {
	rows := make([]*Row, 0, len(nodes))
	for i, n := range nodes {
		row := n.Row(options)
		row.Level, row.Position, row.Size = level, i+1, len(nodes)
		row.Open = options.OpenLevels < 0 || level <= options.OpenLevels
		row.Children = rowsOf(n.Children, level+1, options)
		rows = append(rows, row)
	}
	return rows
}

// Row returns the node in words. Its level, position and children are not filled in.
func (n *Node) Row(options RowOptions) *Row {
	row := &Row{
		ID: EscapeText(n.ID), Name: EscapeText(n.Name), Class: n.Kind.Class(), Words: EscapeText(n.describeNode()),
		Problems: []string{}, Troubled: n.isTroubled(),
	}
	if n.Below > 0 {
		row.Below = fmt.Sprintf("%d below", n.Below)
	}
	if n.Troubled > 0 {
		row.Hidden = fmt.Sprintf("%d with a problem", n.Troubled)
	}
	for _, c := range n.Problems {
		row.Problems = append(row.Problems, EscapeText(c.describeProblem(options.People)))
	}
	if options.People && n.People != nil {
		row.People = EscapeText(n.People.describeLists())
	}
	return row
}

// describeNode returns words such as "sub-namespace, terminating".
func (n *Node) describeNode() string {
	words := []string{string(n.Kind)}
	if n.Template != "" {
		words = append(words, "template "+n.Template)
	}
	if n.Cycle {
		words = append(words, "(cycle)")
	}
	if n.Terminating {
		words = append(words, "terminating")
	}
	return strings.Join(words, ", ")
}

// describeProblem describes what is wrong. Unless people is true, it leaves out the message of an LNamespace, which may name
// people.
func (c Condition) describeProblem(people bool) string {
	message := c.Message
	if c.Of == OfTenant && !people {
		message = "kubectl describe lns shows the message, which may name people"
	}
	if message == "" {
		return fmt.Sprintf("%s is %s: %s", c.Type, c.Status, c.Reason)
	}
	return fmt.Sprintf("%s (%s: %s)", message, c.Type, c.Reason)
}

func (p *People) describeLists() string {
	return "managers: " + orNobody(p.Managers) + "; users: " + orNobody(p.Users) + "; sudoers: " + orNobody(p.Sudoers)
}

func orNobody(names []string) string {
	if len(names) == 0 {
		return "nobody"
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		if quoted[i] = name; strings.ContainsAny(name, `,;"`) { // else a name could look like several, or like another list
			quoted[i] = strconv.Quote(name)
		}
	}
	return strings.Join(quoted, ", ")
}

// maxText is the greatest length of one value, in bytes: names of bindings and messages of other users have any length,
// and may be on a page many times.
const maxText = 4096

// EscapeText returns a value as a page or drawing shows it. Of several spaces, each second one is written as \x20,
// because a browser shows them as one.
func EscapeText(value string) string {
	return strings.ReplaceAll(terminal.Escape(text.Cut(value, maxText)), "  ", ` \x20`)
}
