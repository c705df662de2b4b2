// Package manifests generates what depends on the configured kinds: the policies that list them with their bindings, and
// the operator's role for them. The words of the policies are in templates; only the lists of kinds are generated.
package manifests

import (
	"bytes"
	"embed"
	"slices"
	"strings"
	"text/template"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

// File is one generated manifest.
type File struct {
	Path string // below config, such as policy/copy.yaml
	Text []byte // YAML, with several documents where there are bindings
}

// notice is the first line of each file.
const notice = "# Generated from the configured kinds: `make manifests`, or `manager manifests --config FILE`.\n"

//go:embed templates
var texts embed.FS

var templates = template.Must(template.ParseFS(texts, "templates/*.yaml"))

// For returns the manifests that fit a configuration. The same kinds, in whatever order, give the same bytes.
func For(c *config.OperatorConfiguration) []File {
	resources := resourcesOf(c)
	seen := struct {
		Groups  []group
		Granted []resource
	}{byGroup(resources), withoutGranted(resources)}
	var files []File
	for _, path := range []string{"policy/copy.yaml", "policy/rail_names.yaml", "policy/operator_cage_objects.yaml", "rbac/kinds_configured_role.yaml"} {
		text := bytes.NewBufferString(notice)
		if err := templates.ExecuteTemplate(text, path[strings.Index(path, "/")+1:], seen); err != nil {
			panic(err) // templates and what they see are fixed at build time
		}
		files = append(files, File{Path: path, Text: text.Bytes()})
	}
	return files
}

// Print returns all manifests as one stream of documents.
func Print(c *config.OperatorConfiguration) []byte {
	var texts [][]byte
	for _, file := range For(c) {
		texts = append(texts, file.Text)
	}
	return bytes.Join(texts, []byte("---\n"))
}

// group is one rule of a policy.
type group struct {
	Name      string
	Resources []resource
}

func byGroup(resources []resource) []group {
	var groups []group
	for _, r := range resources {
		i := slices.IndexFunc(groups, func(g group) bool { return g.Name == r.Group })
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{Name: r.Group})
		}
		groups[i].Resources = append(groups[i].Resources, r)
	}
	return groups
}

// withoutGranted leaves out what ClusterRole warren-manager grants whatever the configuration says.
func withoutGranted(resources []resource) []resource {
	return slices.DeleteFunc(slices.Clone(resources), func(r resource) bool { return r.Group == rbacGroup })
}
