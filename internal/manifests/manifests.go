package manifests

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strings"

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
var templates embed.FS

// marker is the text in each template that the list of kinds replaces. Package text/template could replace it, too, but that package calls
// methods by their names, so that the linker would have to keep every exported method of the whole program: 18 MB.
const marker = "<kinds>"

// For returns the manifests that fit a configuration. The same kinds, in whatever order, give the same bytes.
func For(c *config.OperatorConfiguration) []File {
	resources := resourcesOf(c)
	groups := byGroup(resources)
	everyWrite := rulesOf(groups, true, "CREATE", "UPDATE", "DELETE")
	cage, role := fill("policy/operator_cage_objects.yaml", everyWrite), rightsOf(withoutGranted(resources))
	if c.FeatureEnabled(config.PropagateGenerated) {
		cage.Text, role = openForGenerated(cage.Text), strings.TrimSuffix(role, none)+rightsOnGenerated(c)
	}
	return []File{
		fill("policy/copy.yaml", everyWrite),
		fill("policy/rail_names.yaml", rulesOf(groups, false, "CREATE")),
		cage,
		hintsFor(c),
		fill("rbac/kinds_configured_role.yaml", role),
	}
}

// fill returns the file at path, made from its template and a list of rules.
func fill(path, list string) File {
	text, err := templates.ReadFile("templates/" + path[strings.Index(path, "/")+1:])
	if err != nil {
		panic(err) // templates are fixed at build time
	}
	return File{Path: path, Text: []byte(notice + strings.ReplaceAll(string(text), marker, list))}
}

// rulesOf returns a policy's rules for these operations on the resources of groups. With status, the rules also match the status of the
// resources that have one.
func rulesOf(groups []group, status bool, operations ...string) string {
	text := &strings.Builder{}
	for _, g := range groups {
		fmt.Fprintf(text, "\n    - apiGroups:\n      - %s\n      apiVersions:\n      - '*'\n      operations:", cmp.Or(g.Name, "''"))
		for _, operation := range operations {
			text.WriteString("\n      - " + operation)
		}
		text.WriteString("\n      scope: Namespaced\n      resources:")
		for _, r := range g.Resources {
			text.WriteString("\n      - " + r.Name)
			if status && r.Status {
				text.WriteString("\n      - " + r.Name + "/status")
			}
		}
	}
	return text.String()
}

// none is an empty list of rules in YAML.
const none = " []"

// rightsOf returns the rules of the operator's role for the kinds.
func rightsOf(resources []resource) string {
	if len(resources) == 0 {
		return none
	}
	text := &strings.Builder{}
	for _, r := range resources {
		fmt.Fprintf(text, "\n- apiGroups: [%s]\n  resources: [%s]\n  verbs: [get, list, watch, create, update, delete]",
			cmp.Or(r.Group, `""`), r.Name)
	}
	return text.String()
}

// Print returns all manifests as one stream of documents.
func Print(c *config.OperatorConfiguration) []byte {
	var texts [][]byte
	for _, file := range For(c) {
		texts = append(texts, file.Text)
	}
	return bytes.Join(texts, []byte("---\n"))
}

// group holds the resources of one API group, which share one rule of a policy.
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

// withoutGranted leaves out the resources that ClusterRole warren-manager grants under every configuration.
func withoutGranted(resources []resource) []resource {
	return slices.DeleteFunc(slices.Clone(resources), func(r resource) bool { return r.Group == rbacGroup })
}
