// Command release adds the last parts of a release to the folder with the others: archives of the plugins with their krew manifests, the
// changelog of the version, checksums, and a statement of provenance.
//
//	go run ./hack/release -version v1.2.3 -commit COMMIT -plugins FOLDER -o dist
//
// FOLDER has the plugins as OS/ARCH/kubectl-warren.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// repository is where a release is published.
const repository = "https://github.com/warren-tenancy/warren"

// release is one version of the product.
type release struct {
	version, commit string
	plugins, out    string // folders
}

func main() {
	var r release
	flag.StringVar(&r.version, "version", "", "the version, such as v1.2.3")
	flag.StringVar(&r.commit, "commit", "", "the commit that it is made of")
	flag.StringVar(&r.plugins, "plugins", "", "the folder of the plugins")
	flag.StringVar(&r.out, "o", "dist", "the folder to write to")
	flag.Parse()
	if err := r.run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func (r release) run() error {
	if r.version == "" || r.commit == "" || r.plugins == "" {
		return errors.New("usage: release -version VERSION -commit COMMIT -plugins FOLDER [-o FOLDER]")
	}
	for _, step := range []func() error{r.writeChangelog, r.packPlugins, r.writeChecksums} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// writeChangelog writes the version's section of CHANGELOG.md or, if the version has none yet, section Unreleased.
func (r release) writeChangelog() error {
	text, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return fmt.Errorf("reading the changelog: %w", err)
	}
	for _, title := range []string{r.version, "Unreleased"} {
		if section, ok := sectionOf(string(text), title); ok {
			return r.write("CHANGELOG.md", []byte("# "+r.version+"\n\n"+r.withFullLinks(section)))
		}
	}
	return fmt.Errorf("CHANGELOG.md has neither a section %q nor one %q: write what a cluster admin notices", "## "+r.version, "## Unreleased")
}

// ownLink is a link to a file of the clone.
var ownLink = regexp.MustCompile(`\]\(([^:)]+)\)`)

// withFullLinks returns a text whose links lead to the files of the version also from the release page.
func (r release) withFullLinks(text string) string {
	return ownLink.ReplaceAllString(text, "]("+repository+"/blob/"+r.version+"/$1)")
}

// sectionOf returns the text below a heading of the second level.
func sectionOf(text, title string) (string, bool) {
	_, after, ok := strings.Cut(text, "\n## "+title+"\n")
	section, _, _ := strings.Cut(after, "\n## ")
	return strings.TrimSpace(section) + "\n", ok
}

func (r release) write(name string, content []byte) error {
	path := filepath.Join(r.out, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
