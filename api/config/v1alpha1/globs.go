package v1alpha1

import (
	"path"
	"slices"
)

// Globs are patterns of path.Match, in which * stops at /.
type Globs []string

// Match reports whether one of the patterns matches all of key.
func (g Globs) Match(key string) bool {
	return slices.ContainsFunc(g, func(pattern string) bool {
		matched, err := path.Match(pattern, key)
		return err == nil && matched // no bad pattern is left after validation
	})
}
