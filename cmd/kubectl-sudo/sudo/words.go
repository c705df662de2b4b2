package sudo

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// refusals explains why a flag of kubectl can't be used with sudo, by the flag's long name: kubectl sudo sets it itself, or it
// contradicts sudo.
var refusals = map[string]string{
	"as":            "--as is set by kubectl sudo",
	"as-group":      "--as-group is set by kubectl sudo",
	"as-user-extra": "--as-user-extra is set by kubectl sudo: give a reason with --reason before COMMAND",
	"as-uid":        "--as-uid can't be used with sudo: nobody may choose a UID",
	flagAll:         "-A can't be used with sudo: it holds in one tenant",
}

// refuseFlag fails for a flag that can't go with sudo. -A=false is as if it weren't there.
func refuseFlag(name, value string) error {
	message, refused := refusals[name]
	if !refused {
		return nil
	}
	if on, err := strconv.ParseBool(value); name == flagAll && err == nil && !on {
		return nil
	}
	return errors.New(message)
}

// flagUser chooses the person who asks. It is the only flag for the connection whose name a command that asks the API server can
// have for a flag of its own: "create rolebinding --user" names who gets the rights.
const flagUser = "user"

// readWords parses COMMAND and the words after it, up to --, for what decides about the tenant: it sets kubectl's flags for the API
// server and the namespace, and returns the tenant that is named after lns; "" if none is. It ignores unknown flags, those of
// commands and plugins. isGlobal reports whether kubectl, behind some words, takes a flag for its own and not for COMMAND's.
func readWords(connection *pflag.FlagSet, words []string,
	isGlobal func(flag *pflag.Flag, behind []string) bool) (tenant string, err error) {
	r := &reader{connection: connection, words: words, switches: switchesOf(words[0]), isGlobal: isGlobal}
	awaited, doubtful := false, false // the next name is that of a tenant; the next word may be the value of the flag before
	for r.at = 1; r.at < len(words) && words[r.at] != "--"; r.at++ {
		word := words[r.at]
		switch {
		case strings.HasPrefix(word, "--"):
			doubtful, err = r.readLongFlag(word)
		case len(word) > 1 && word[0] == '-':
			doubtful, err = r.readShortFlags(word)
		default:
			if name, is := isLNamespaceWord(word); is && tenant == "" {
				tenant, awaited = name, name == ""
			} else if awaited && !doubtful {
				tenant, awaited = word, false
			}
			doubtful = false
		}
		if err != nil {
			return "", err
		}
	}
	return tenant, nil
}

// isLNamespaceWord reports whether a word is our kind as kubectl's users write it: lns, lnamespaces.tenancy.warren.dev, lns/payments. The
// name is what stands behind the slash.
func isLNamespaceWord(word string) (name string, is bool) {
	resource, name, _ := strings.Cut(word, "/")
	kind, group, _ := strings.Cut(strings.ToLower(resource), ".")
	switch kind {
	case "lns", "lnamespace", "lnamespaces":
		return name, group == "" || group == v1alpha1.Domain || group == v1alpha1.GroupVersion.Version+"."+v1alpha1.Domain
	}
	return "", false
}

// switchesOf returns the one-letter flags of a command that take no value, so that the n of -itn is found.
func switchesOf(command string) string {
	const common = "hiqRtw"
	if command == "logs" {
		return common + "fp"
	}
	return common
}

// reader goes through the words of a command line.
type reader struct {
	connection *pflag.FlagSet
	words      []string
	at         int // the word that is being read
	switches   string
	isGlobal   func(flag *pflag.Flag, behind []string) bool
}

// readLongFlag reads --name, --name=value or --name value. open reports that the next word may be a value.
func (r *reader) readLongFlag(word string) (open bool, err error) {
	name, value, given := strings.Cut(word[2:], "=")
	if err := refuseFlag(name, value); err != nil {
		return false, err
	}
	flag := r.connection.Lookup(name)
	switch {
	case flag == nil, name == flagUser && !r.isGlobal(flag, r.words[:r.at]):
		return !given, nil
	case !given && flag.NoOptDefVal != "":
		return false, set(flag, flag.NoOptDefVal)
	case !given:
		return false, r.setNext(flag)
	}
	return false, set(flag, value)
}

// readShortFlags reads -n value, -nvalue, -n=value, and one-letter flags that stand together, as in -itn value.
func (r *reader) readShortFlags(word string) (open bool, err error) {
	for i := 1; i < len(word); i++ {
		letter, rest := word[i], word[i+1:]
		value := strings.TrimPrefix(rest, "=")
		if letter == 'A' {
			return false, refuseFlag(flagAll, value)
		}
		var flag *pflag.Flag
		if letter < 0x80 { // pflag panics at half a letter
			flag = r.connection.ShorthandLookup(string(rune(letter)))
		}
		switch {
		case flag != nil && rest == "":
			return false, r.setNext(flag)
		case flag != nil:
			return false, set(flag, value)
		case !strings.Contains(r.switches, string(rune(letter))):
			return rest == "", nil
		}
	}
	return false, nil
}

// setNext takes the next word as the flag's value, even if it looks like a flag. If there is no next word, kubectl will report that.
func (r *reader) setNext(flag *pflag.Flag) error {
	if r.at+1 == len(r.words) {
		return nil
	}
	r.at++
	return set(flag, r.words[r.at])
}

func set(flag *pflag.Flag, value string) error {
	if err := flag.Value.Set(value); err != nil {
		return fmt.Errorf("invalid argument %q for --%s: %w", value, flag.Name, err)
	}
	return nil
}
