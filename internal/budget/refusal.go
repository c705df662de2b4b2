package budget

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// QuotaName is the name of the ResourceQuota that holds the share of a namespace.
const QuotaName = "hrq.tenancy.warren.dev"

// ParseRefusal returns what an object was refused for which the share of its namespace was too small, from the message of the API server,
// which is also that of the Event of the controller that tried to create the object. The message is "… exceeded quota: NAME, requested:
// pods=1,requests.cpu=2, used: …". It returns nil if the message speaks of no quota, or of another one only. A message that names our quota
// in another form is answered with a unit of each resource of hard.
func ParseRefusal(message string, hard Amounts) Amounts {
	_, rest, refused := strings.Cut(message, "exceeded quota: ")
	if !refused || !strings.Contains(rest, QuotaName) {
		return nil
	}
	_, rest, found := strings.Cut(rest, QuotaName+", requested: ")
	text, _, ended := strings.Cut(rest, ", used: ")
	if amounts := parseAmounts(text); found && ended && amounts != nil {
		return amounts
	}
	units := make(Amounts, len(hard))
	for key := range hard {
		units[key] = unitOf(key)
	}
	return units
}

// FormatRefusal returns the message that ParseRefusal reads, as the API server writes it when an object needs requested. used and limited
// are status.used and status.hard of the ResourceQuota.
func FormatRefusal(requested, used, limited corev1.ResourceList) string {
	return fmt.Sprintf("exceeded quota: %s, requested: %s, used: %s, limited: %s", QuotaName, FormatList(requested, requested),
		FormatList(requested, used), FormatList(requested, limited))
}

// FormatList returns the quantities of the resources that keys has, in alphabetical order, such as "pods=1,requests.cpu=2".
func FormatList(keys, list corev1.ResourceList) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		quantity := list[key]
		parts = append(parts, string(key)+"="+quantity.String())
	}
	return strings.Join(parts, ",")
}

func parseAmounts(text string) Amounts {
	list := corev1.ResourceList{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(part, "=")
		if HasLongExponent([]byte(value)) {
			return nil // who may create Events may write anything here
		}
		quantity, err := resource.ParseQuantity(value)
		if err != nil || quantity.Sign() <= 0 {
			return nil
		}
		list[corev1.ResourceName(key)] = quantity
	}
	return AmountsOf(list)
}
