package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/manifests"
	"github.com/warren-tenancy/warren/test/devcluster"
)

// layer is what one switch changes: the difference between two lists of components.
type layer struct {
	when     string   // the condition, as an expression in Helm's templates
	given    []string // conditions of earlier layers that are true in from, and so also in to
	from, to []string
}

const (
	distribution = "or .Values.components.distribution .Values.components.distributionOverwrite"
	authority    = ".Values.components.hierarchyAuthority"
	billing      = `ne (include "warren.billingDriver" .) "none"`
)

// layers are in the order in which a kustomization lists the components.
var layers = []layer{
	{when: ".Values.components.strictPlacement", to: []string{"strict-placement"}},
	{when: ".Values.components.openAccess", to: []string{"open-access"}},
	{when: ".Values.components.hardened", to: []string{"hardened"}},
	{when: distribution, to: []string{"distribution"}},
	{when: ".Values.components.distributionOverwrite", given: []string{distribution}, from: []string{"distribution"},
		to: []string{"distribution-overwrite"}},
	{when: authority, to: []string{"hierarchy-authority"}},
	{
		when: "and " + authority + " (" + distribution + ")", given: []string{distribution, authority},
		// hierarchy-authority patches only the objects of components that are listed before it
		from: []string{"hierarchy-authority", "distribution"}, to: []string{"distribution", "hierarchy-authority"},
	},
	{when: ".Values.components.budgets", to: []string{"budgets"}},
	{when: ".Values.components.requests", to: []string{"requests"}},
	{when: ".Values.components.certManager", to: []string{"cert-manager"}},
	{when: ".Values.components.webhookClients", to: []string{"webhook-clients"}},
	{when: billing, to: []string{"billing-exporter"}},
	withWarehouse("sqlite"), withWarehouse("postgres"), withWarehouse("bigquery"),
}

func withWarehouse(driver string) layer {
	return layer{
		when: `eq (include "warren.billingDriver" .) "` + driver + `"`, given: []string{billing},
		from: []string{"billing-exporter"}, to: []string{"billing-" + driver},
	}
}

// renderTemplates returns the chart's generated templates by their names, a file for each object.
func renderTemplates() (map[string][]byte, error) {
	base, err := render(nil)
	if err != nil {
		return nil, err
	}
	merged := map[string]merge{}
	for name, text := range base {
		merged[name] = mergeOf(text)
	}
	for _, l := range layers {
		from, err := render(l.from)
		if err != nil {
			return nil, err
		}
		to, err := render(l.to)
		if err != nil {
			return nil, err
		}
		for name := range union(from, to) {
			if merged[name], err = merged[name].add(from[name], to[name], l); err != nil {
				return nil, fmt.Errorf("%s with %v: %w", name, l.to, err)
			}
		}
	}
	generated, err := generatedByKinds()
	if err != nil {
		return nil, err
	}
	files, err := renderMonitoring()
	if err != nil {
		return nil, err
	}
	for name, lines := range merged {
		switch {
		case strings.HasPrefix(name, "customresourcedefinition_"):
			lines = lines.under(".Values.crds.enabled")
		case generated[name]:
			lines = lines.under("not .Values.controller.kindManifests")
		}
		files[name] = lines.template()
	}
	return files, nil
}

// hashed matches the name, with a hash, that kustomize gives the operator's ConfigMap. In the chart, pods have a checksum instead.
var hashed = regexp.MustCompile(`\bwarren-config-[0-9a-z]{10}\b`)

// folded matches a Helm expression with a line break. YAML breaks lines that would be too long.
var folded = regexp.MustCompile(`('\{\{[^'\n]*)\n +([^'\n]*\}\}')`)

// render returns the objects of config/default with these components, by the names of their templates. The objects contain Helm expressions
// in place of the chart's values. The operator's Namespace is not among them: it exists before the chart is installed, and Helm stores its
// record of the release in it.
func render(components []string) (map[string]string, error) {
	var paths []string
	for _, c := range components {
		paths = append(paths, "config/components/"+c)
	}
	all, err := devcluster.RenderWith("config/default", append(paths, "config/chart")...)
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, u := range all {
		if u.GetKind() == "Namespace" && u.GetName() == "warren-system" {
			continue
		}
		addCommon(u)
		text, err := yaml.Marshal(u.Object)
		if err != nil {
			return nil, fmt.Errorf("writing %s %s: %w", u.GetKind(), u.GetName(), err)
		}
		text = folded.ReplaceAll(hashed.ReplaceAll(text, []byte("warren-config")), []byte("$1 $2"))
		texts[templateName(u.GetKind(), u.GetNamespace(), hashed.ReplaceAllString(u.GetName(), "warren-config"))] = string(text)
	}
	return texts, nil
}

// templateName returns the name of an object's template. Two objects may have the same name: in namespace default and in the operator's.
func templateName(kind, namespace, name string) string {
	if namespace == "default" {
		name += "_default"
	}
	return strings.ToLower(kind) + "_" + strings.ReplaceAll(name, ":", "_") + ".yaml"
}

// generatedByKinds returns the names of the templates of objects that list the configured kinds.
func generatedByKinds() (map[string]bool, error) {
	names := map[string]bool{}
	for document := range bytes.SplitSeq(manifests.Print(configfile.Default()), []byte("\n---\n")) {
		var object struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := yaml.Unmarshal(document, &object); err != nil {
			return nil, fmt.Errorf("reading what the configured kinds decide: %w", err)
		}
		names[templateName(object.Kind, "", object.Metadata.Name)] = true
	}
	return names, nil
}

func union(a, b map[string]string) map[string]bool {
	names := map[string]bool{}
	for name := range a {
		names[name] = true
	}
	for name := range b {
		names[name] = true
	}
	return names
}
