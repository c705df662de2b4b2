package live

import (
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/graph"
)

// Line is a row and its position: the IDs of its parent row, and of the row before it below the same parent; "" for
// none.
type Line struct {
	*graph.Row
	Parent string `json:"parent"`
	After  string `json:"after"`
	// HasChildren reports whether there are rows below.
	HasChildren bool `json:"hasChildren"`
	version     int
}

// Message is for a page that shows version From. Lines and Removed are what is different in Version; Counts, Unread and
// Trouble are whole. Lines are in the order in which they are drawn.
type Message struct {
	// Proof is the Proof of the Book.
	Proof   string   `json:"proof"`
	From    int      `json:"from"`
	Version int      `json:"version"`
	Lines   []Line   `json:"lines"`
	Removed []string `json:"removed"`
	Counts  string   `json:"counts"`
	Unread  []string `json:"unread"`
	// Trouble reports that the API server does not answer, and since when; "" where it does.
	Trouble string `json:"trouble"`
}

// Page is the forest in one version.
type Page struct {
	Version int
	Forest  *graph.Forest
	Head    graph.Head
	Trouble string
	// Problem explains why no tree can be shown.
	Problem string
}

// Book holds the rows in their present version. mu guards everything below it.
type Book struct {
	// Proof is a secret of the program that each page and each message holds. Another program that listens on the port
	// later has never seen it.
	Proof string

	roots []string

	mu      sync.Mutex
	homes   []string
	page    Page
	ready   bool
	first   chan struct{}
	lines   map[string]Line
	order   []string
	removed map[string]int // by row, the version in which it went away
	next    chan struct{}  // closed when there is a new version
}

func newBook(roots, homes []string) *Book {
	return &Book{
		Proof: rand.Text(),
		roots: roots, homes: homes, first: make(chan struct{}), next: make(chan struct{}), lines: map[string]Line{}, removed: map[string]int{},
		page: Page{Forest: &graph.Forest{}},
	}
}

// AddHome adds a namespace to the homes: a walk then shows its tree, too.
func (b *Book) AddHome(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(b.homes, name) {
		b.homes = append(b.homes, name)
	}
}

// findTops returns the namespaces at which a walk begins.
func (b *Book) findTops() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Concat(b.roots, b.homes)
}

// Ready returns a channel that is closed once the first version is there.
func (b *Book) Ready() <-chan struct{} { return b.first }

// Page returns the present version.
func (b *Book) Page() Page {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.page
}

// setFacts makes the next version, if anything is different.
func (b *Book) setFacts(facts graph.Facts, trouble Trouble, failed error) {
	var built *graph.Forest
	if failed == nil {
		built, failed = graph.Build(facts, b.roots...)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	page := Page{Forest: built, Problem: sentenceOf(failed), Trouble: trouble.String()}
	if built == nil {
		page.Forest = b.page.Forest // the last one stays
	}
	page.Head = page.Forest.Head(graph.About{})
	page.Version = b.page.Version + 1
	changed := b.replaceRows(page.Forest.Rows(graph.RowOptions{People: true, OpenLevels: -1}), page.Version)
	same := !changed && b.page.Problem == page.Problem && b.page.Trouble == page.Trouble &&
		slices.Equal(b.page.Head.Unread, page.Head.Unread)
	if b.ready && same {
		return
	}
	b.page = page
	close(b.next)
	b.next = make(chan struct{})
	if !b.ready {
		b.ready = true
		close(b.first)
	}
}

// String is the trouble as a page shows it.
func (t Trouble) String() string {
	if t.Sentence == "" {
		return ""
	}
	return "Not updated since " + t.Since.UTC().Format(time.RFC3339) + ": " + t.Sentence
}

// replaceRows replaces the rows by those of a new version, and reports whether any is different.
func (b *Book) replaceRows(rows []*graph.Row, version int) bool {
	lines, order := make(map[string]Line, len(b.lines)), make([]string, 0, len(b.order))
	changed := false
	var take func(rows []*graph.Row, parent string)
	take = func(rows []*graph.Row, parent string) {
		after := ""
		for _, row := range rows {
			line := Line{Row: row, Parent: parent, After: after, HasChildren: len(row.Children) > 0, version: version}
			if old, ok := b.lines[row.ID]; ok && old.isShownAs(line) {
				line.version = old.version
			} else {
				changed = true
			}
			children := row.Children
			row.Children = nil // the lines are kept, not the trees
			lines[row.ID] = line
			order = append(order, row.ID)
			after = row.ID
			take(children, row.ID)
		}
	}
	take(rows, "")
	for id := range b.lines {
		if _, stays := lines[id]; !stays {
			b.removed[id], changed = version, true
		}
	}
	maps.DeleteFunc(b.removed, func(id string, _ int) bool { _, back := lines[id]; return back })
	b.lines, b.order = lines, order
	return changed
}

// isShownAs reports whether a page shows both lines alike. Positions and sizes are not compared, because the page counts
// them itself.
func (l Line) isShownAs(other Line) bool {
	return l.Parent == other.Parent && l.After == other.After && l.HasChildren == other.HasChildren && l.Level == other.Level &&
		l.Name == other.Name && l.Class == other.Class && l.Words == other.Words && l.Below == other.Below && l.Hidden == other.Hidden &&
		l.People == other.People && l.Troubled == other.Troubled && slices.Equal(l.Problems, other.Problems)
}

// Since returns what is different from a version, and a channel that is closed when there is a newer one.
func (b *Book) Since(version int) (Message, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := Message{
		Proof: b.Proof, From: version, Version: b.page.Version, Lines: []Line{}, Removed: []string{}, Counts: b.page.Head.Counts,
		Unread: append([]string{}, b.page.Head.Unread...), Trouble: b.page.Trouble,
	}
	if b.page.Problem != "" {
		m.Unread = append(m.Unread, b.page.Problem)
	}
	for _, id := range b.order {
		if line := b.lines[id]; line.version > version {
			m.Lines = append(m.Lines, line)
		}
	}
	for id, gone := range b.removed {
		if gone > version {
			m.Removed = append(m.Removed, id)
		}
	}
	slices.Sort(m.Removed)
	return m, b.next
}
