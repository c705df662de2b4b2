package budget

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Sum is what is used below one limit.
type Sum struct {
	Used Amounts
	most map[corev1.ResourceName]*Row // the namespace that uses most of a resource
}

// SumUsed returns what is used below each limit, by its index, of the resources of the limit.
func SumUsed(limits []Limit, rows []Row) []Sum {
	type line struct {
		key   corev1.ResourceName
		total int64
		most  *Row
	}
	lines := make([][]line, len(limits))
	for i, limit := range limits {
		for key := range limit.Hard {
			lines[i] = append(lines[i], line{key: key})
		}
	}
	for i := range rows {
		for _, l := range rows[i].Under {
			for n := range lines[l] {
				is := &lines[l][n]
				used := rows[i].Used[is.key]
				if is.total = addUp(is.total, used); is.most == nil || used > is.most.Used[is.key] {
					is.most = &rows[i]
				}
			}
		}
	}
	sums := make([]Sum, len(limits))
	for i := range sums {
		sums[i] = Sum{Amounts{}, map[corev1.ResourceName]*Row{}}
		for _, is := range lines[i] {
			sums[i].Used[is.key], sums[i].most[is.key] = is.total, is.most
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

// DescribeExcess returns a sentence about the first resource of which more is used than hard allows; "" if there is none.
func (s Sum) DescribeExcess(hard Amounts) string {
	for _, key := range sortedKeys(hard) {
		if excess := s.Used[key] - hard[key]; excess > 0 {
			most := s.most[key]
			return fmt.Sprintf("%s: %s used of %s, most in %s (%s): the limit was lowered, or namespaces joined; nothing new is admitted "+
				"until more than %s are deleted", key, Format(key, s.Used[key]), Format(key, hard[key]), most.Namespace, Format(key, most.Used[key]),
				Format(key, excess))
		}
	}
	return ""
}

// DescribeFull returns an addition to a sentence that names the resources of which all is used; "" if there is none.
func (s Sum) DescribeFull(hard Amounts) string {
	var full []string
	for _, key := range sortedKeys(hard) {
		if hard[key] > 0 && s.Used[key] == hard[key] {
			full = append(full, string(key))
		}
	}
	if full == nil {
		return ""
	}
	return "; nothing is free of " + strings.Join(full, ", ") + ": delete something, or a cluster admin raises the limit"
}

// FindLacking returns of which resource a limit has less free than an object needs; "" if it has enough of all.
func (s Sum) FindLacking(hard, requested Amounts) corev1.ResourceName {
	for _, key := range sortedKeys(requested) {
		if most, limited := hard[key]; limited && most-s.Used[key] < requested[key] {
			return key
		}
	}
	return ""
}

// Format returns an amount as people write it: 1500m, 2Gi, 12.
func Format(key corev1.ResourceName, amount int64) string {
	quantity := quantityOf(key, amount)
	return quantity.String()
}

func sortedKeys[T any](of map[corev1.ResourceName]T) []corev1.ResourceName {
	return slices.Sorted(maps.Keys(of))
}
