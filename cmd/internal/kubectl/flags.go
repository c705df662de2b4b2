package kubectl

import "github.com/spf13/pflag"

// GivenFlags returns the flags that the user gave, as arguments for the kubectl that a plugin runs: kubectl takes the
// same flags. A flag that is a list becomes one argument for each of its elements.
func GivenFlags(flags *pflag.FlagSet) (args []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Changed {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			args = append(args, "--"+f.Name+"="+value)
		}
	})
	return args
}
