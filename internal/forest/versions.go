package forest

import "k8s.io/apimachinery/pkg/util/resourceversion"

// IsNewer reports whether resourceVersion a is strictly newer than b; false where they cannot be compared.
func IsNewer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}
