package tree

import (
	"cmp"
	"strings"
)

// CompareNames orders names as people read them: numbers in them by their value, so that team-2 is before team-10.
func CompareNames(a, b string) int {
	restA, restB := a, b
	for restA != "" && restB != "" {
		numberA, numberB := leadingNumber(restA), leadingNumber(restB)
		if numberA == "" || numberB == "" {
			if restA[0] != restB[0] {
				return cmp.Compare(restA[0], restB[0])
			}
			restA, restB = restA[1:], restB[1:]
			continue
		}
		restA, restB = restA[len(numberA):], restB[len(numberB):]
		numberA, numberB = strings.TrimLeft(numberA, "0"), strings.TrimLeft(numberB, "0")
		if order := cmp.Or(cmp.Compare(len(numberA), len(numberB)), cmp.Compare(numberA, numberB)); order != 0 {
			return order
		}
	}
	// Names that differ only in leading zeros are still two names.
	return cmp.Or(cmp.Compare(len(restA), len(restB)), cmp.Compare(a, b))
}

func leadingNumber(text string) string {
	return text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
}
