package budget

import (
	"math"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// AmountsOf returns quantities as amounts. A fraction of a resource's smallest step counts as a whole one, and what is too large for a
// number as the largest.
func AmountsOf(list corev1.ResourceList) Amounts {
	if list == nil {
		return nil
	}
	amounts := make(Amounts, len(list))
	for key, quantity := range list {
		switch most := largestOf(key); {
		case isCPU(key) && isBelow(quantity, float64(most/1000)):
			amounts[key] = quantity.MilliValue()
		case !isCPU(key) && isBelow(quantity, float64(most)):
			amounts[key] = quantity.Value()
		default:
			amounts[key] = most
		}
	}
	return amounts
}

// isBelow compares by approximation: Quantity.Cmp calculates for hours with 1e1000000000, which users may write.
func isBelow(quantity resource.Quantity, bound float64) bool {
	return quantity.AsApproximateFloat64() < bound
}

// largestExponent is 1 with the largest exponent that is read.
const largestExponent = 1e99

var longExponent = regexp.MustCompile(`(^|[:,[]\s*"?)\s*[-+]?[0-9.]+[eE][-+]?[0-9]{3}`)

// HasLongExponent reports whether a quantity has an exponent of more than two digits. text is one quantity, or JSON. Kubernetes' parser
// calculates for hours with 1e-1000000000, and takes all memory, so such a text must not reach it.
func HasLongExponent(text []byte) bool { return longExponent.Match(text) }

// largestOf is the largest amount of a resource. The API server refuses most larger numbers of objects: it can't tell that they are whole.
func largestOf(key corev1.ResourceName) int64 {
	if isCPU(key) || isBytes(key) && !isOfClass(key) {
		return math.MaxInt64
	}
	return mostCounted
}

const mostCounted = math.MaxInt64 / 1024

// List returns the amounts as quantities: bytes with binary suffixes, all others with decimal ones.
func (a Amounts) List() corev1.ResourceList {
	if a == nil {
		return nil
	}
	list := make(corev1.ResourceList, len(a))
	for key, amount := range a {
		list[key] = quantityOf(key, amount)
	}
	return list
}

func quantityOf(key corev1.ResourceName, amount int64) resource.Quantity {
	switch {
	case isCPU(key):
		return *resource.NewMilliQuantity(amount, resource.DecimalSI)
	case isBytes(key):
		return *resource.NewQuantity(amount, resource.BinarySI)
	}
	return *resource.NewQuantity(amount, resource.DecimalSI)
}

// UnitOf returns the least quantity of a resource that is worth a write.
func UnitOf(key corev1.ResourceName) resource.Quantity { return quantityOf(key, unitOf(key)) }

// unitOf is the least amount of a resource that is worth a write: one object, a tenth of a CPU, 128 MiB.
func unitOf(key corev1.ResourceName) int64 {
	switch {
	case isCPU(key):
		return 100
	case isBytes(key):
		return 128 << 20
	}
	return 1
}

func isCPU(key corev1.ResourceName) bool {
	return key == corev1.ResourceCPU || key == corev1.ResourceRequestsCPU || key == corev1.ResourceLimitsCPU
}

// isBytes reports whether a resource is measured in bytes. All others but cpu are counts, whatever their names: an extended resource called
// example.com/memory is one.
func isBytes(key corev1.ResourceName) bool {
	name := strings.TrimPrefix(strings.TrimPrefix(string(key), "requests."), "limits.")
	return name == "memory" || name == "storage" || name == "ephemeral-storage" ||
		strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) && !strings.Contains(name, "/") || isOfClass(key)
}

// isOfClass reports whether a resource is the storage of one StorageClass. Kubernetes checks its amounts like those of counts.
func isOfClass(key corev1.ResourceName) bool {
	return strings.HasSuffix(string(key), ".storageclass.storage.k8s.io/requests.storage")
}
