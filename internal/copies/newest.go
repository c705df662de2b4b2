package copies

import "github.com/warren-tenancy/warren/internal/forest"

// Newest holds the highest resourceVersion, of an object or of a list, that each watch of copies has shown. P names the
// watch.
type Newest[P comparable] map[P]string

// Record records a resourceVersion that a watch has shown.
func (n Newest[P]) Record(watch P, resourceVersion string) {
	if newest := n[watch]; newest == "" || forest.IsNewer(resourceVersion, newest) {
		n[watch] = resourceVersion
	}
}

// IsPast reports whether a watch has shown something newer: if it shows no such copy, the copy has been deleted since,
// or has lost its label.
func (n Newest[P]) IsPast(watch P, resourceVersion string) bool {
	return forest.IsNewer(n[watch], resourceVersion)
}
