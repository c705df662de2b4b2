package text

import "fmt"

// Count returns n with the noun that goes with it: one for 1, many for any other number.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
