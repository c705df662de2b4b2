package configfile

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The checks that the sections of the file share. Each problem that they return has the value and the rule.

func invalidUnlessEqual(at *field.Path, value, want string) field.ErrorList {
	switch value {
	case want:
		return nil
	case "":
		return field.ErrorList{field.Required(at, "must be "+want)}
	}
	return field.ErrorList{field.Invalid(at, value, "must be "+want)}
}

func checkOneOf[T ~string](at *field.Path, value T, allowed ...T) field.ErrorList {
	var names []string
	for _, a := range allowed {
		if value == a {
			return nil
		}
		names = append(names, string(a))
	}
	last := len(names) - 1
	rule := "must be " + names[0]
	if last > 0 {
		rule = "must be " + strings.Join(names[:last], ", ") + " or " + names[last]
	}
	return field.ErrorList{field.Invalid(at, string(value), rule)}
}

func checkAtLeast[N int | int32 | int64](at *field.Path, value, low N) field.ErrorList {
	if value < low {
		return field.ErrorList{field.Invalid(at, int64(value), fmt.Sprintf("must be at least %d", low))}
	}
	return nil
}

func checkBetween[N int | int32 | int64](at *field.Path, value, low, high N) field.ErrorList {
	if value < low || value > high {
		return field.ErrorList{field.Invalid(at, int64(value), fmt.Sprintf("must be from %d to %d", low, high))}
	}
	return nil
}

func durationAtLeast(at *field.Path, value metav1.Duration, low time.Duration) field.ErrorList {
	if value.Duration < low {
		return field.ErrorList{field.Invalid(at, value.Duration.String(), "must be at least "+low.String())}
	}
	return nil
}

// checkBytesAtLeast also refuses fractions of a byte, and numbers that don't fit an int64.
func checkBytesAtLeast(at *field.Path, value resource.Quantity, low int64) field.ErrorList {
	if n, whole := value.AsInt64(); !whole || n < low {
		return field.ErrorList{field.Invalid(at, value.String(), fmt.Sprintf("must be a whole number of bytes, at least %d", low))}
	}
	return nil
}

func durationBetween(at *field.Path, value metav1.Duration, low, high time.Duration) field.ErrorList {
	if value.Duration < low || value.Duration > high {
		return field.ErrorList{field.Invalid(at, value.Duration.String(), "must be from "+low.String()+" to "+high.String())}
	}
	return nil
}
