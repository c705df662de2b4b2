package budget

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// SumUsed returns what is used below each limit, by its index, of the resources of the limit.
func SumUsed(limits []Limit, rows []Row) []Amounts {
	sums := make([]Amounts, len(limits))
	for i, limit := range limits {
		sums[i] = Amounts{}
		for key := range limit.Hard {
			sums[i][key] = 0
		}
	}
	for i := range rows {
		for _, l := range rows[i].Under {
			for key := range limits[l].Hard {
				sums[l].add(key, rows[i].Used[key])
			}
		}
	}
	return sums
}

// Free returns what is left of hard; 0 where more is used.
func Free(hard, used Amounts) Amounts {
	free := make(Amounts, len(hard))
	for key, amount := range hard {
		free[key] = max(amount-used[key], 0)
	}
	return free
}

// DescribeExcess returns a sentence about the first resource of which more is used below a limit than it allows; "" if there is none.
func DescribeExcess(limits []Limit, rows []Row, l int, used Amounts) string {
	for _, key := range sortedKeys(limits[l].Hard) {
		if excess := used[key] - limits[l].Hard[key]; excess > 0 {
			most := largestUser(rows, l, key)
			return fmt.Sprintf("%s: %s used of %s, most in %s (%s): the limit was lowered, or namespaces joined; nothing new is admitted "+
				"until %s are deleted", key, Format(key, used[key]), Format(key, limits[l].Hard[key]), most.Namespace, Format(key, most.Used[key]),
				Format(key, excess))
		}
	}
	return ""
}

// largestUser returns the row below a limit that uses most of a resource.
func largestUser(rows []Row, l int, key corev1.ResourceName) (most *Row) {
	for i := range rows {
		if slices.Contains(rows[i].Under, l) && (most == nil || rows[i].Used[key] > most.Used[key]) {
			most = &rows[i]
		}
	}
	return most
}

// Format returns an amount as people write it: 1500m, 2Gi, 12.
func Format(key corev1.ResourceName, amount int64) string {
	quantity := quantityOf(key, amount)
	return quantity.String()
}
