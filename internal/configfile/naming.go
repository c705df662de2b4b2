package configfile

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

// CheckName returns why name may not be the name of a new sub-namespace in the tree of root. It joins one error for each naming policy
// that name breaks; nil if it breaks none.
func CheckName(policies []config.NamingPolicy, root, name string) error {
	var broken []error
	for _, policy := range policies {
		broken = append(broken, checkNamingPolicy(policy, root, name))
	}
	return errors.Join(broken...)
}

// checkNamingPolicy returns why name breaks the policy in the tree of root; nil if it doesn't, or if the policy doesn't apply to that
// tree. The leftmost match of Root decides which text its groups have.
func checkNamingPolicy(p config.NamingPolicy, root, name string) error {
	rootPattern, err := regexp.Compile(p.Root)
	if err != nil {
		return fmt.Errorf("naming policy: root: %w", err)
	}
	groups := rootPattern.FindStringSubmatch(root)
	if groups == nil {
		return nil
	}
	pattern := expandGroups(p.Match, func(reference string) string {
		if i := indexOfGroup(rootPattern, reference); i >= 0 {
			return regexp.QuoteMeta(groups[i])
		}
		return ""
	})
	match, err := regexp.Compile(pattern)
	if err != nil { // validation put x for a group; inside [] or {}, this root's text may not compile
		return fmt.Errorf("name %q can't be judged by the naming policy of root %s: %w", name, root, err)
	}
	if !match.MatchString(name) {
		return fmt.Errorf("name %q breaks the naming policy of root %s: must match %s", name, root, pattern)
	}
	return nil
}

// groupReference finds $$, ${name}, $name and $1. A dollar before anything else means the end of the text, as in "-x$".
var groupReference = regexp.MustCompile(`\$(?:\$|\{([^}]*)\}|(\w+))`)

// expandGroups replaces the references in match by what group returns for them.
func expandGroups(match string, group func(reference string) string) string {
	return groupReference.ReplaceAllStringFunc(match, func(reference string) string {
		if reference == "$$" {
			return "$"
		}
		return group(strings.Trim(reference, "${}"))
	})
}

// indexOfGroup returns the index of the group that has this name or number, -1 if there is none.
func indexOfGroup(pattern *regexp.Regexp, reference string) int {
	if i, err := strconv.Atoi(reference); err == nil {
		if i < 0 || i > pattern.NumSubexp() {
			return -1
		}
		return i
	}
	return pattern.SubexpIndex(reference)
}

// parseWithReferences parses match with x in the place of each reference. match has passed validation.
func parseWithReferences(match string) *syntax.Regexp {
	parsed, err := syntax.Parse(expandGroups(match, func(string) string { return "x" }), syntax.Perl)
	if err != nil {
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}
	}
	return parsed.Simplify()
}

// isAnchoredAtStart reports whether match can match at the start of a name only.
func isAnchoredAtStart(match string) bool {
	program, err := syntax.Compile(parseWithReferences(match))
	return err == nil && program.StartCond()&syntax.EmptyBeginText != 0
}

// isNamePossible reports whether match asks for no character that a Namespace's name can't have.
func isNamePossible(match string) bool { return matchesLabelText(parseWithReferences(match)) }

// labelCharacters are those of a DNS label.
const labelCharacters = "-0123456789abcdefghijklmnopqrstuvwxyz"

// matchesLabelText reports whether each part of pattern that can't be left out matches text of labelCharacters.
func matchesLabelText(pattern *syntax.Regexp) bool {
	matches := func(c rune) bool {
		matched, err := regexp.MatchString("^(?:"+pattern.String()+")$", string(c))
		return err != nil || matched
	}
	switch pattern.Op {
	case syntax.OpNoMatch:
		return false
	case syntax.OpCharClass:
		return strings.ContainsFunc(labelCharacters, matches)
	case syntax.OpLiteral:
		foreign := func(r rune) bool {
			return !strings.ContainsRune(labelCharacters, r) && (pattern.Flags&syntax.FoldCase == 0 || !unicode.IsLetter(r))
		}
		return !slices.ContainsFunc(pattern.Rune, foreign)
	case syntax.OpAlternate:
		return slices.ContainsFunc(pattern.Sub, matchesLabelText)
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		return !slices.ContainsFunc(pattern.Sub, func(part *syntax.Regexp) bool { return !matchesLabelText(part) })
	}
	return true // pattern may be left out, or matches any character or none
}

func validateNamingPolicies(at *field.Path, policies []config.NamingPolicy) field.ErrorList {
	var problems field.ErrorList
	for i, policy := range policies {
		problems = append(problems, validateNamingPolicy(at.Index(i), policy)...)
	}
	return problems
}

func validateNamingPolicy(at *field.Path, p config.NamingPolicy) field.ErrorList {
	var problems field.ErrorList
	var root *regexp.Regexp
	if p.Root == "" {
		problems = append(problems, field.Required(at.Child("root"), "a Go regexp on the name of a root"))
	} else if compiled, err := regexp.Compile(p.Root); err != nil {
		problems = append(problems, invalidRegexpError(at.Child("root"), p.Root, err))
	} else {
		root = compiled
	}
	if p.Match == "" {
		return append(problems, field.Required(at.Child("match"), "a Go regexp on the name of a new sub-namespace"))
	}
	pattern := expandGroups(p.Match, func(reference string) string {
		if root != nil && indexOfGroup(root, reference) < 0 {
			problems = append(problems, field.Invalid(at.Child("match"), p.Match, fmt.Sprintf("group %q is not defined by root", reference)))
		}
		return "x"
	})
	if _, err := regexp.Compile(pattern); err != nil {
		problems = append(problems, invalidRegexpError(at.Child("match"), p.Match, err))
	}
	return problems
}

func invalidRegexpError(at *field.Path, value string, err error) *field.Error {
	return field.Invalid(at, value, "must be a Go regexp: "+err.Error())
}
