package invocation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Choice is the value of a flag that takes one of a few words.
type Choice struct {
	Value   string
	allowed []string
}

var _ pflag.Value = &Choice{}

func (c *Choice) String() string { return c.Value }

// Type implements pflag.Value: --help shows the allowed words, as client|server.
func (c *Choice) Type() string { return strings.Join(c.allowed, "|") }

// Set refuses a word that is not allowed, so that it is reported before any request is made.
func (c *Choice) Set(value string) error {
	if !slices.Contains(c.allowed, value) {
		return fmt.Errorf("must be %s", c.DescribeAllowed())
	}
	c.Value = value
	return nil
}

// DescribeAllowed returns the allowed words as text, such as "none, client or server".
func (c *Choice) DescribeAllowed() string {
	last := len(c.allowed) - 1
	return strings.Join(c.allowed[:last], ", ") + " or " + c.allowed[last]
}

// AddChoice gives cmd a flag that takes one of the words allowed, and completes these words.
func AddChoice(cmd *cobra.Command, name, shorthand, value, usage string, allowed ...string) *Choice {
	c := &Choice{Value: value, allowed: allowed}
	cmd.Flags().VarP(c, name, shorthand, usage)
	if err := cmd.RegisterFlagCompletionFunc(name,
		cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag was just added
	}
	return c
}
