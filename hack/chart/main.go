// Command chart writes the Helm chart from config/default, its components and the files of config/chart. What a component changes depends
// on a condition in the chart's templates.
//
//	go run ./hack/chart -o dist/chart/warren -version v1.2.3
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"

	"github.com/warren-tenancy/warren/test/devcluster"
)

func main() {
	out := flag.String("o", "dist/chart/warren", "the folder to write, which is replaced")
	version := flag.String("version", "v0.0.0-dev", "the version of chart and image, such as v1.2.3")
	repository := flag.String("repository", "", "the default of image.repository")
	flag.Parse()
	if err := run(*out, *version, *repository); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(out, version, repository string) error {
	if !semver.IsValid(version) {
		return fmt.Errorf("-version is %q: must be a semantic version such as v1.2.3", version)
	}
	root, err := devcluster.Root()
	if err != nil {
		return err
	}
	templates, err := renderTemplates()
	if err != nil {
		return err
	}
	schema, err := valuesSchema()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return fmt.Errorf("removing the former chart: %w", err)
	}
	if err := copyStatic(root, out, version, repository); err != nil {
		return err
	}
	for name, text := range templates {
		if err := write(filepath.Join(out, "templates", name), text); err != nil {
			return err
		}
	}
	return write(filepath.Join(out, "values.schema.json"), schema)
}

// copyStatic copies what is not generated: the files of config/chart, and the configuration files of components.
func copyStatic(root, out, version, repository string) error {
	if err := os.CopyFS(out, os.DirFS(filepath.Join(root, "config", "chart"))); err != nil {
		return fmt.Errorf("copying config/chart: %w", err)
	}
	if err := os.Remove(filepath.Join(out, "kustomization.yaml")); err != nil {
		return fmt.Errorf("copying config/chart: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(root, "config", "components", "*", "config.yaml"))
	if err != nil {
		return fmt.Errorf("looking for configuration files: %w", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading a component's configuration: %w", err)
		}
		if err := write(filepath.Join(out, "config", filepath.Base(filepath.Dir(file))+".yaml"), text); err != nil {
			return err
		}
	}
	if err := setRepository(filepath.Join(out, "values.yaml"), repository); err != nil {
		return err
	}
	return setVersion(filepath.Join(out, "Chart.yaml"), version)
}

func setRepository(file, repository string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the chart's values: %w", err)
	}
	return write(file, bytes.Replace(text, []byte(`repository: ""`), fmt.Appendf(nil, "repository: %q", repository), 1))
}

func setVersion(file, version string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the chart's description: %w", err)
	}
	chart := map[string]any{}
	if err := yaml.Unmarshal(text, &chart); err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	chart["version"], chart["appVersion"] = strings.TrimPrefix(version, "v"), version
	if text, err = yaml.Marshal(chart); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return write(file, text)
}

func write(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("writing the chart: %w", err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return fmt.Errorf("writing the chart: %w", err)
	}
	return nil
}
