package sudo

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// refusals explains why a flag of kubectl can't be used with sudo, by the flag's long name: kubectl sudo sets it
// itself, or it contradicts sudo.
var refusals = map[string]string{
	"as":            "--as is set by kubectl sudo",
	"as-group":      "--as-group is set by kubectl sudo",
	"as-user-extra": "--as-user-extra is set by kubectl sudo: give a reason with --reason before COMMAND",
	"as-uid":        "--as-uid can't be used with sudo: a sudoer may not impersonate a UID",
	flagAll:         "-A can't be used with sudo, which covers only one tenant: name a namespace with -n",
}

// refuseFlag returns an error for a flag that can't be used with sudo. -A=false is allowed: it means the same as no -A.
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

// flagUser is kubectl's flag --user, which selects a user of the kubeconfig. Of the flags for the connection, it is the
// only one whose name is also that of a command's own flag: with "create rolebinding", --user names who gets the
// rights. (Commands that don't ask the API server don't count.)
const flagUser = "user"

// readWords parses COMMAND and the words after it, up to --, to find the tenant. It sets kubectl's flags for the API
// server and the namespace, and returns the tenant that is named after lns; "" if none is. It ignores the flags of
// commands and plugins, except those that sudo refuses, which are an error. isGlobal reports whether kubectl takes a
// flag that follows the words in behind as its own, not as COMMAND's.
func readWords(connection *pflag.FlagSet, words []string,
	isGlobal func(flag *pflag.Flag, behind []string) bool) (tenant string, err error) {
	r := &reader{connection: connection, words: words, switches: switchesOf(words[0]), isGlobal: isGlobal}
	awaited, doubtful := false, false // awaited: the next name is a tenant's; doubtful: the next word may be the value of the flag before it
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

// isLNamespaceWord reports whether a word means kind LNamespace, as kubectl's users write it: lns,
// lnamespaces.tenancy.warren.dev, lns/payments. The name is the part after the slash.
func isLNamespaceWord(word string) (name string, is bool) {
	resource, name, _ := strings.Cut(word, "/")
	kind, group, _ := strings.Cut(strings.ToLower(resource), ".")
	switch kind {
	case "lns", "lnamespace", "lnamespaces":
		return name, group == "" || group == v1alpha1.Domain || group == v1alpha1.GroupVersion.Version+"."+v1alpha1.Domain
	}
	return "", false
}

// switchesOf returns the one-letter flags of a command that take no value, so that -n is found in -itn.
func switchesOf(command string) string {
	const common = "hiqRtw"
	if command == "logs" {
		return common + "fp"
	}
	return common
}

// reader reads the words of a command line one after the other.
type reader struct {
	connection *pflag.FlagSet
	words      []string
	at         int // the index of the word that is being read
	switches   string
	isGlobal   func(flag *pflag.Flag, behind []string) bool
}

// readLongFlag reads --name, --name=value or --name value. open reports that the next word may be the value of a flag
// that the reader doesn't know.
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
		return false, setFlag(flag, flag.NoOptDefVal)
	case !given:
		return false, r.setNext(flag)
	}
	return false, setFlag(flag, value)
}

// readShortFlags reads -n value, -nvalue, -n=value, and one-letter flags in one word, as in -itn value. open reports
// that the next word may be the value of a flag that the reader doesn't know.
func (r *reader) readShortFlags(word string) (open bool, err error) {
	for i := 1; i < len(word); i++ {
		letter, rest := word[i], word[i+1:]
		value := strings.TrimPrefix(rest, "=")
		if letter == 'A' {
			if rest != "" && rest[0] != '=' {
				value = "" // another one-letter flag follows, as in -Af
			}
			return false, refuseFlag(flagAll, value)
		}
		var flag *pflag.Flag
		if letter < 0x80 { // pflag panics for a part of a character
			flag = r.connection.ShorthandLookup(string(rune(letter)))
		}
		switch {
		case flag != nil && rest == "":
			return false, r.setNext(flag)
		case flag != nil:
			return false, setFlag(flag, value)
		case !strings.Contains(r.switches, string(rune(letter))):
			return rest == "", nil
		}
	}
	return false, nil
}

// setNext takes the next word as the flag's value, even if it looks like a flag. If there is no next word, kubectl will
// report that.
func (r *reader) setNext(flag *pflag.Flag) error {
	if r.at+1 == len(r.words) {
		return nil
	}
	r.at++
	return setFlag(flag, r.words[r.at])
}

func setFlag(flag *pflag.Flag, value string) error {
	if err := flag.Value.Set(value); err != nil {
		return fmt.Errorf("invalid argument %q for --%s: %w", value, flag.Name, err)
	}
	return nil
}
