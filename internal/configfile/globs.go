package configfile

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	tenancy "github.com/warren-tenancy/warren/api/v1alpha1"
)

func validateAllGlobs(at *field.Path, globs config.Globs) field.ErrorList {
	var problems field.ErrorList
	for i, pattern := range globs {
		problems = append(problems, validateGlobPattern(at.Index(i), pattern)...)
	}
	return problems
}

func validateGlobPattern(at *field.Path, pattern string) field.ErrorList {
	if pattern == "" {
		return field.ErrorList{field.Required(at, "an empty pattern matches nothing")}
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return field.ErrorList{field.Invalid(at, pattern, "must be a pattern of path.Match: "+err.Error())}
	}
	return nil
}

// validateKeyGlobs checks patterns of label or annotation keys. None may be in the operator's own domain, and none may occur twice.
func validateKeyGlobs(at *field.Path, globs config.Globs) field.ErrorList {
	problems := validateAllGlobs(at, globs)
	for i, pattern := range globs {
		if isInOwnDomain(pattern) {
			problems = append(problems, field.Forbidden(at.Index(i),
				`"`+pattern+`" can't be inherited: keys of `+tenancy.Domain+` belong to the operator`))
		}
		if slices.Contains(globs[:i], pattern) {
			problems = append(problems, field.Duplicate(at.Index(i), pattern))
		}
	}
	return problems
}

// isInOwnDomain reports whether the pattern begins with our domain, or a subdomain, and a slash, before any metacharacter. A wider
// pattern, such as */*, may match our keys too: those keys are ignored when the pattern is used.
func isInOwnDomain(pattern string) bool {
	literal := pattern
	if i := strings.IndexAny(pattern, `*?[\`); i >= 0 {
		literal = pattern[:i]
	}
	domain, _, hasPrefix := strings.Cut(literal, "/")
	return hasPrefix && (domain == tenancy.Domain || strings.HasSuffix(domain, "."+tenancy.Domain))
}
