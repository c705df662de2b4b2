package ui

import (
	"net/http"
	"time"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/graph"
)

// maxUnfolded is the number of rows up to which the forest begins unfolded, patience how long a page waits for the
// first lists.
const (
	maxUnfolded = 300
	patience    = 30 * time.Second
)

// forestPage is the body of the page of the forest.
type forestPage struct {
	Head    graph.Head
	Rows    []*graph.Row
	Blank   *graph.Row
	Open    bool
	People  bool
	Drawing bool
	Trouble string
	Problem string
}

func (v *server) serveForest(w http.ResponseWriter, r *http.Request) {
	if root := r.URL.Query().Get("root"); root != "" {
		if err := checkName("namespace", root); err != nil {
			v.writeFrame(w, "problem", v.newFrame("Forest"), err)
			return
		}
		v.follower.Book().AddHome(root)
	}
	select {
	case <-v.follower.Book().Ready():
	case <-r.Context().Done():
		return
	case <-time.After(patience): // the page says that nothing is read yet
	}
	page := v.follower.Book().Page()
	open := page.Forest.Counts.Rows <= maxUnfolded
	levels := 0
	if open {
		levels = -1
	}
	frame := v.newFrame("Forest of " + v.place)
	frame.Version, frame.Unread = page.Version, page.Head.Unread
	frame.Body = forestPage{
		Head: page.Head, Rows: page.Forest.Rows(graph.RowOptions{People: true, OpenLevels: levels}), Open: open, People: true,
		Blank:   &graph.Row{Problems: []string{"?"}, Below: "?", Hidden: "?", People: "?"},
		Trouble: page.Trouble, Problem: page.Problem,
	}
	v.writeFrame(w, "forest", frame, nil)
}

// wayTo returns the names of the rows from the top to the namespace called name, as the forest shows them; none where
// it is not shown.
func (v *server) wayTo(name string) []string {
	var way, found []string
	v.follower.Book().Page().Forest.Walk(func(n *graph.Node, depth int) {
		way = append(way[:min(depth, len(way))], n.Name)
		if n.Name == name && found == nil && n.Kind.IsNamespace() {
			found = append([]string{}, way...)
		}
	})
	return found
}
