package main

import (
	"context"
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// opening matches the beginning of a package comment, with the package's name.
var opening = regexp.MustCompile(`^((Package|Command|Program) )?[\w-]+ `)

// packagesPage lists the packages of the repository, each with the first sentence of its comment.
func packagesPage(context.Context) (string, error) {
	p := newPage("Packages", "the packages' comments", "What each package is for. [The design](../design.md) shows how they work together. "+
		"A package's own comment has more.")
	folders := []struct{ name, holds string }{
		{"api", "the kinds and the configuration file"},
		{"controllers", "what acts on the cluster, a package for each subject"},
		{"webhooks", "admission"},
		{"internal", "what controllers and webhooks share"},
		{"pkg", "for programs of others"},
		{"cmd", "programs beside the operator"},
		{"test", "tests as a user sees the product, and what they share"},
		{"hack", "programs for developers"},
	}
	for _, folder := range folders {
		p.heading(fmt.Sprintf("`%s`: %s", folder.name, folder.holds), "package", "what it is or does")
		if err := p.addPackages(folder.name); err != nil {
			return "", err
		}
	}
	return p.String(), nil
}

// addPackages adds a row for each package in the folder and below it.
func (p *page) addPackages(folder string) error {
	return filepath.WalkDir(folder, func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if entry.Name() == "testdata" {
			return fs.SkipDir
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			return err
		}
		comment, err := packageComment(files)
		if err != nil {
			return err
		}
		if comment == "" {
			return fmt.Errorf("package %s has no comment", dir)
		}
		p.row(code(path.Clean(filepath.ToSlash(dir))), opening.ReplaceAllString(new(doc.Package).Synopsis(comment), ""))
		return nil
	})
}

// packageComment returns the comment of the first file that has one, and of a test only if no other file has one.
func packageComment(files []string) (string, error) {
	comment := ""
	for _, file := range files {
		test := strings.HasSuffix(file, "_test.go")
		if test && comment != "" {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return "", err
		}
		if text := parsed.Doc.Text(); text != "" {
			if comment = text; !test {
				return comment, nil
			}
		}
	}
	return comment, nil
}
