package sim

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/warren-tenancy/warren/test/whole/api"
)

// describeChange returns what a write has changed, a path after the other.
func describeChange(e api.Event) string {
	switch {
	case e.Old == nil:
		return "created"
	case e.Old.GetResourceVersion() == e.New.GetResourceVersion():
		return "unchanged"
	case e.Type == "DELETED":
		return "deleted"
	}
	var changes []string
	compareValues("", e.Old.Object, e.New.Object, &changes)
	return strings.Join(changes, "; ")
}

func compareValues(path string, before, after any, changes *[]string) {
	if reflect.DeepEqual(before, after) || path == ".metadata.managedFields" || path == ".metadata.resourceVersion" {
		return
	}
	old, isMap := before.(map[string]any)
	now, isStillMap := after.(map[string]any)
	if isMap && isStillMap {
		keys := maps.Clone(old)
		maps.Copy(keys, now)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			compareValues(path+"."+key, old[key], now[key], changes)
		}
		return
	}
	oldList, isList := before.([]any)
	nowList, isStillList := after.([]any)
	if isList && isStillList && len(oldList) == len(nowList) {
		for i := range oldList {
			compareValues(fmt.Sprintf("%s[%d]", path, i), oldList[i], nowList[i], changes)
		}
		return
	}
	*changes = append(*changes, fmt.Sprintf("%s: %v -> %v", path, before, after))
}
