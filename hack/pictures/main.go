// Pictures writes the pictures of the documentation as SVG, readable on a light and on a dark page.
//
//	go run ./hack/pictures [DIR]
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// pictures maps the name of each file to the function that draws it.
var pictures = map[string]func() *drawing{"tree.svg": drawTree, "architecture.svg": drawArchitecture, "sudo.svg": drawSudo}

func main() {
	dir := "docs/pictures"
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	if err := run(dir); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, draw := range pictures {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(draw().String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// drawTree shows a tenant, its tree, and how a Secret reaches it.
func drawTree() *drawing {
	d := newDrawing(760, 330, "A tenant's tree: LNamespace payments, its root namespace, two sub-namespaces, and copies of Secret registry")
	d.box(20, 20, 210, 96, "strong", "LNamespace payments", "users: alice", "managers: mia", "sudoers: bob")
	d.box(290, 20, 220, 96, "plain", "Namespace payments", "root of the tree")
	d.box(310, 74, 180, 30, "source", "Secret registry")
	d.box(20, 200, 220, 96, "plain", "Namespace pay-web", "sub-namespace")
	d.box(40, 254, 180, 30, "copy", "copy of registry")
	d.box(290, 200, 220, 96, "plain", "Namespace pay-db", "sub-namespace")
	d.box(310, 254, 180, 30, "copy", "copy of registry")
	d.arrow(230, 60, 290, 60, "solid")
	d.arrow(296, 116, 130, 200, "solid")
	d.arrow(400, 116, 400, 200, "solid")
	d.arrow(310, 96, 220, 264, "dashed")
	d.arrow(475, 104, 475, 254, "dashed")
	d.text(530, 48, "label propagate=update:")
	d.text(530, 66, "one write for each copy")
	d.text(20, 150, "makes, and grants the lists")
	d.text(20, 168, "their rights in the tree")
	return d
}

// drawSudo shows who may do what where, in a table.
func drawSudo() *drawing {
	d := newDrawing(600, 290, "Who may do what where: users work in their tree, "+
		"managers edit the lists, and sudoers may do everything in the tree, but only with sudo")
	d.write(216, 26, "title", "in the tree of payments")
	d.write(416, 26, "title", "in the tree of shop")
	for i, row := range [][3]string{
		{"alice", "user", "ClusterRole admin"}, {"mia", "manager: edits the lists", "nothing"}, {"bob", "sudoer", "nothing"},
		{"bob, for one command", "kubectl sudo", "everything"},
	} {
		y := 40 + 62*i
		class := "copy"
		if row[2] == "nothing" {
			class = "plain"
		}
		d.box(10, y, 184, 52, "strong", row[0], row[1])
		d.box(204, y, 190, 52, class, row[2])
		d.box(404, y, 186, 52, "plain", "nothing")
	}
	return d
}

// drawArchitecture shows the programs, and what passes between them and the API server.
func drawArchitecture() *drawing {
	d := newDrawing(760, 400, "People write objects to the API server; its policies and the operator's webhooks judge them; the operator "+
		"writes what follows")
	d.box(20, 30, 180, 76, "plain", "People, CI", "kubectl and", "Warren's plugins")
	d.box(290, 20, 240, 180, "strong", "API server", "authorizer (RBAC)", "admission policies", "of Warren")
	d.box(310, 124, 200, 58, "plain", "etcd", "the only state")
	d.box(290, 280, 240, 100, "source", "Operator (2 replicas)", "one leads and writes,", "both answer webhooks")
	d.box(590, 280, 150, 100, "copy", "Billing exporter", "optional")
	d.box(590, 30, 150, 76, "plain", "Warehouse", "SQLite, BigQuery", "or PostgreSQL")
	d.box(20, 280, 190, 100, "plain", "Prometheus", "metrics, alerts")
	d.arrow(200, 66, 290, 66, "solid")
	d.arrow(350, 200, 350, 280, "dashed")
	d.arrow(470, 280, 470, 200, "solid")
	d.arrow(640, 280, 530, 190, "dashed")
	d.arrow(690, 280, 690, 106, "solid")
	d.arrow(210, 330, 290, 330, "solid")
	d.text(215, 56, "requests")
	d.text(215, 236, "watches, reviews")
	d.text(480, 250, "writes")
	d.text(614, 236, "reads")
	d.text(700, 196, "rows")
	return d
}
