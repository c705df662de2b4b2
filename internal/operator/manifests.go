package operator

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/manifests"
)

// printManifests prints the manifests that depend on the configured kinds: policies warren-copy, warren-rail-names,
// warren-operator-cage-objects and warren-hint-* with their bindings, and the operator's ClusterRole warren-kinds-configured. With --dir
// it writes them as files in that folder instead.
func printManifests(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("manifests", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints the error
	path := flags.String("config", "", "the configuration file; without it the defaults hold")
	dir := flags.String("dir", "", "write policy/copy.yaml, policy/rail_names.yaml, policy/operator_cage_objects.yaml, "+
		"rbac/kinds_configured_role.yaml and hints/source_hints.yaml into this folder, and print nothing")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(out, "manager manifests prints the policies and the ClusterRole that depend on the configured kinds.")
		flags.SetOutput(out)
		flags.PrintDefaults()
		return nil
	case err != nil:
		return err
	case flags.NArg() > 0:
		return fmt.Errorf("unknown argument %q: manifests takes flags only; see manager manifests --help", flags.Arg(0))
	}
	c, err := configfile.Load(*path)
	if err != nil {
		return err
	}
	if *dir != "" {
		return writeFiles(*dir, manifests.For(c))
	}
	_, err = out.Write(manifests.Print(c))
	return err
}

// writeFiles puts the files into dir, which exists.
func writeFiles(dir string, files []manifests.File) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("--dir %q: there is no such folder: create it, or name the folder config of a clone", dir)
	}
	for _, file := range files {
		name := filepath.Join(dir, filepath.FromSlash(file.Path))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return fmt.Errorf("--dir %q: making the folder of %s: %w", dir, file.Path, err)
		}
		if err := os.WriteFile(name, file.Text, 0o644); err != nil {
			return fmt.Errorf("--dir %q: writing %s: %w", dir, file.Path, err)
		}
	}
	return nil
}
