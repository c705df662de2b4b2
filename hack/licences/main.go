// Licences checks that every module whose packages are linked into our programs stands under a licence that we may
// ship with.
//
//	go run ./hack/licences [-list] [PACKAGE...]
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	list := flag.Bool("list", false, "print each module with its licences")
	flag.Parse()
	packages := flag.Args()
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	if err := run(packages, *list, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(packages []string, list bool, out io.Writer) error {
	modules, err := linkedModules(packages)
	if err != nil {
		return err
	}
	var refused []error
	for _, m := range modules {
		licences, err := m.findLicences()
		if err != nil {
			return err
		}
		if list {
			fmt.Fprintf(out, "%s %s\t%s\n", m.path, m.version, strings.Join(licences, ", "))
		}
		if problem := judgeModule(licences); problem != nil {
			refused = append(refused, fmt.Errorf("module %s %s: %w", m.path, m.version, problem))
		}
	}
	return errors.Join(refused...)
}

// module is a module of others, with the folders of those of its packages that are linked in.
type module struct {
	path, version, dir string
	packages           []string
}

// linkedModules returns the modules that the packages depend on, tests aside, sorted by path.
func linkedModules(packages []string) ([]module, error) {
	command := exec.Command("go", append([]string{"list", "-deps", "-json=Dir,Standard,Module"}, packages...)...)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the modules with %s: %w", command, err)
	}
	byPath := map[string]*module{}
	decoder := json.NewDecoder(strings.NewReader(string(output)))
	for {
		var p struct {
			Dir      string
			Standard bool
			Module   *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("reading the output of %s: %w", command, err)
		}
		if p.Standard || p.Module == nil || p.Module.Main {
			continue
		}
		m := byPath[p.Module.Path]
		if m == nil {
			m = &module{path: p.Module.Path, version: p.Module.Version, dir: p.Module.Dir}
			byPath[m.path] = m
		}
		m.packages = append(m.packages, p.Dir)
	}
	var modules []module
	for _, m := range byPath {
		modules = append(modules, *m)
	}
	slices.SortFunc(modules, func(a, b module) int { return strings.Compare(a.path, b.path) })
	return modules, nil
}
