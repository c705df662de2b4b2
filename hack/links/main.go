// Links checks that every relative link in the repository's Markdown leads to a file and, if it names a heading, to that
// heading in the file. Links to other sites are not followed.
//
//	go run ./hack/links [DIR]
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	broken, err := brokenLinks(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	for _, b := range broken {
		fmt.Fprintln(os.Stderr, b)
	}
	if len(broken) > 0 {
		os.Exit(1)
	}
}

// brokenLinks returns one line, FILE:LINE: problem, for each link below root that leads nowhere.
func brokenLinks(root string) ([]string, error) {
	var broken []string
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && file != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin") {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(file) != ".md" {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, l := range linksOf(string(text)) {
			if problem := followLink(file, l.target); problem != "" {
				broken = append(broken, fmt.Sprintf("%s:%d: %s", file, l.line, problem))
			}
		}
		return nil
	})
	return broken, err
}

// followLink returns what is wrong with a link, or nothing.
func followLink(from, target string) string {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return ""
	}
	path, heading, _ := strings.Cut(target, "#")
	file := from
	if path != "" {
		file = filepath.Join(filepath.Dir(from), path)
	}
	if _, err := os.Stat(file); err != nil {
		return fmt.Sprintf("link to %s: no such file", target)
	}
	if heading == "" || filepath.Ext(file) != ".md" {
		return ""
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Sprintf("link to %s: %v", target, err)
	}
	if !anchorsOf(string(text))[heading] {
		return fmt.Sprintf("link to %s: no such heading", target)
	}
	return ""
}
