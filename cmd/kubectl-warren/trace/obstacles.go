package trace

import (
	"regexp"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Obstacle is an object that is in the way of a copy.
type Obstacle struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// From is the namespace of the source.
	From string `json:"from"`
}

// obstacleItem matches the beginning of an item in the message of condition Propagated: kind, name and namespace of a
// source.
var obstacleItem = regexp.MustCompile(`(?:^|; )([A-Z][A-Za-z0-9]*) ("(?:[^"\\]|\\.)*") from "([^"]*)": `)

// ObstaclesIn returns what is in the way of copies in a namespace, by the conditions of its HierarchyConfiguration,
// which name the first ten.
func ObstaclesIn(conditions []metav1.Condition) []Obstacle {
	all := []Obstacle{}
	found := v1alpha1.FindCondition(conditions, v1alpha1.ConditionPropagated)
	if found == nil || found.Status != metav1.ConditionFalse || found.Reason != string(v1alpha1.ReasonConflict) {
		return all
	}
	for _, item := range obstacleItem.FindAllStringSubmatch(found.Message, -1) {
		if name, err := strconv.Unquote(item[2]); err == nil {
			all = append(all, Obstacle{item[1], name, item[3]})
		}
	}
	return all
}
