package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// choice is the value of a flag that takes one of a few words.
type choice struct {
	value   string
	allowed []string
}

var _ pflag.Value = &choice{}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.allowed, "|") }

// Set refuses what is not allowed, so that a wrong word is told before any request is made.
func (c *choice) Set(value string) error {
	if !slices.Contains(c.allowed, value) {
		return fmt.Errorf("must be %s or %s", strings.Join(c.allowed[:len(c.allowed)-1], ", "), c.allowed[len(c.allowed)-1])
	}
	c.value = value
	return nil
}

// addChoice gives cmd a flag that takes one of the words allowed, and completes them.
func addChoice(cmd *cobra.Command, name, shorthand, value, usage string, allowed ...string) *choice {
	c := &choice{value: value, allowed: allowed}
	cmd.Flags().VarP(c, name, shorthand, usage)
	if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag was just added
	}
	return c
}

// Values of --output.
const (
	outputJSON = "json"
	outputYAML = "yaml"
	outputName = "name"
	outputWide = "wide"
)

// writeAs writes value as JSON or YAML.
func writeAs(w io.Writer, format string, value any) error {
	marshal := func(value any) ([]byte, error) { return json.MarshalIndent(value, "", "    ") }
	if format == outputYAML {
		marshal = yaml.Marshal
	}
	text, err := marshal(value)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, strings.TrimSuffix(string(text), "\n"))
	return err
}

// checkName refuses what can't be the name of a namespace, or of a tenant.
func checkName(what, name string) error {
	if len(validation.IsDNS1123Label(name)) > 0 {
		return fmt.Errorf("invalid %s name %q: must be at most 63 lower-case letters, digits and hyphens, with no hyphen at either end", what, name)
	}
	return nil
}
