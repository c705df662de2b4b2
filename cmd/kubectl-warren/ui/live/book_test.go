package live

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/graph"
	"github.com/warren-tenancy/warren/internal/forest"
)

// shown is a page as the browser has it: the order of the children of each row, and the text of each row.
type shown struct {
	version  int
	children map[string][]string
	parents  map[string]string
	words    map[string]string
}

// hear applies a message as assets/ui.js does.
func (s *shown) hear(m Message) {
	s.version = m.Version
	for _, line := range m.Lines {
		s.detach(line.ID)
		siblings := s.children[line.Parent]
		at := slices.Index(siblings, line.After) + 1 // After is "" for the first place, and Index then returns -1
		s.children[line.Parent] = slices.Insert(siblings, at, line.ID)
		s.parents[line.ID] = line.Parent
		s.words[line.ID] = fmt.Sprint(line.Level, line.Name, line.Words, line.Below, line.Hidden, line.Problems)
	}
	for _, id := range m.Removed {
		s.detach(id)
		delete(s.words, id)
	}
}

func (s *shown) detach(id string) {
	if parent, ok := s.parents[id]; ok {
		s.children[parent] = slices.DeleteFunc(s.children[parent], func(other string) bool { return other == id })
		delete(s.parents, id)
	}
}

// list returns the rows in the order of the page.
func (s *shown) list(parent string) []string {
	var all []string
	for _, id := range s.children[parent] {
		all = append(append(all, id+" "+s.words[id]), s.list(id)...)
	}
	return all
}

func newShown() *shown {
	return &shown{children: map[string][]string{}, parents: map[string]string{}, words: map[string]string{}}
}

// TestBook changes a forest at random. It compares three pages: one that got each message, one that got only some, and
// one that was just loaded. This is the server's part of case WEB-U3.
func TestBook(t *testing.T) {
	t.Run("200 random changes", func(t *testing.T) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		book, facts := newBook(nil, nil), graph.Facts{View: gather.EmptyView()}
		always, sometimes := newShown(), newShown()
		for step := range 200 {
			name := fmt.Sprintf("n%02d", random.IntN(20))
			labels := map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}
			if random.IntN(3) > 0 {
				labels = map[string]string{v1alpha1.LabelParent: fmt.Sprintf("n%02d", random.IntN(20)), v1alpha1.LabelBound: v1alpha1.True}
			}
			if random.IntN(5) == 0 {
				facts.View.Forest = facts.View.Forest.WithoutNamespace(name)
			} else {
				facts.View.Forest = facts.View.Forest.WithNamespace(&forest.Namespace{Name: name, UID: "1", Labels: labels})
			}
			book.setFacts(facts, Trouble{}, nil)
			message, _ := book.Since(always.version)
			always.hear(message)
			if random.IntN(10) == 0 {
				message, _ = book.Since(sometimes.version)
				sometimes.hear(message)
			}
			anew := newShown()
			message, _ = book.Since(0)
			anew.hear(message)
			if diff := cmp.Diff(anew.list(""), always.list("")); diff != "" {
				t.Fatalf("after change %d: -anew +live\n%s", step, diff)
			}
		}
		message, _ := book.Since(sometimes.version)
		sometimes.hear(message)
		if diff := cmp.Diff(always.list(""), sometimes.list("")); diff != "" {
			t.Fatalf("a page that hears seldom: %s", diff)
		}
	})
	t.Run("an equal forest is no news", func(t *testing.T) {
		book, facts := newBook(nil, nil), graph.Facts{View: gather.EmptyView()}
		facts.View.Forest = facts.View.Forest.WithNamespace(&forest.Namespace{Name: "a", UID: "1", Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}})
		book.setFacts(facts, Trouble{}, nil)
		before := book.Page().Version
		book.setFacts(facts, Trouble{}, nil)
		if after := book.Page().Version; after != before {
			t.Errorf("version %d after %d", after, before)
		}
	})
}
