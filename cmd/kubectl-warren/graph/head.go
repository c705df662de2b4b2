package graph

import (
	"fmt"
	"time"

	"github.com/warren-tenancy/warren/internal/text"
)

// About is where and when a forest was read.
type About struct {
	// Context is the kubeconfig's context, or the server's address where there is none.
	Context string
	// Reader is the user who has read the forest; "" hides the name.
	Reader string
	Time   time.Time
}

// Head is the text above a drawing.
type Head struct {
	Context, Reader string
	// Time is in RFC 3339, in UTC.
	Time string
	// Counts is a sentence with the numbers of namespaces and trees.
	Counts string
	// Nothing is the text in place of the trees; "" if there is a tree.
	Nothing string
	Unread  []string
}

// Head returns the head of a drawing of the forest.
func (f *Forest) Head(about About) Head {
	one, more := "row with a problem", "rows with problems"
	if len(f.Unread) > 0 { // what could not be read may have problems
		one, more = "row with a known problem", "rows with known problems"
	}
	head := Head{
		Context: EscapeText(about.Context), Reader: EscapeText(about.Reader), Time: about.Time.UTC().Format(time.RFC3339),
		Counts: fmt.Sprintf("%s in %s, %s, %s.", text.Count(f.Counts.Namespaces, "namespace", "namespaces"),
			text.Count(len(f.Trees), "tree", "trees"),
			text.Count(f.Counts.Tenants, "tenant", "tenants"), text.Count(f.Counts.Problems, one, more)),
	}
	if len(f.Trees) == 0 {
		head.Nothing = "No trees found."
	}
	for _, sentence := range f.Unread {
		head.Unread = append(head.Unread, EscapeText(sentence))
	}
	return head
}
