package plane

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/warren-tenancy/warren/test/whole/api"
)

// counted are the resources that the model counts, by the resource of the objects. Any other key limits nothing.
var counted = map[string][]string{
	"pods":                   {"pods", "count/pods"},
	"configmaps":             {"configmaps", "count/configmaps"},
	"secrets":                {"secrets", "count/secrets"},
	"services":               {"services", "count/services"},
	"persistentvolumeclaims": {"persistentvolumeclaims", "count/persistentvolumeclaims"},
}

// findUncounted counts what quotas limit, where their status is not what is there.
func (p *Plane) findUncounted() {
	for _, quota := range p.server.Kind("", "resourcequotas").All() {
		hard, _, _ := unstructured.NestedMap(quota.Object, "spec", "hard")
		used := map[string]any{}
		for key := range hard {
			if of := resourceOf(key); of != "" {
				used[key] = fmt.Sprint(len(p.server.Kind("", of).In(quota.GetNamespace())))
			}
		}
		u := quota.DeepCopy()
		for key, value := range map[string]any{"hard": maps.Clone(hard), "used": used} {
			if err := unstructured.SetNestedField(u.Object, value, "status", key); err != nil {
				panic(err)
			}
		}
		statusHard, _, _ := unstructured.NestedMap(quota.Object, "status", "hard")
		statusUsed, _, _ := unstructured.NestedMap(quota.Object, "status", "used")
		if maps.Equal(statusHard, hard) && maps.Equal(statusUsed, used) {
			continue
		}
		p.add("count quota "+quota.GetNamespace()+"/"+quota.GetName(), func() *api.Refusal {
			_, refusal := p.server.Update(User, quota, "status", u)
			return refusal
		})
	}
}

// resourceOf returns the resource of the objects that a key of a quota counts, "" for a key that counts nothing.
func resourceOf(key string) string {
	for of, keys := range counted {
		if slices.Contains(keys, key) {
			return of
		}
	}
	return ""
}

// admit refuses a creation that a counted quota has no room for, and takes the room otherwise.
func (p *Plane) admit(object, old *api.Record, dryRun bool) *api.Refusal {
	keys := counted[object.Kind.Resource]
	if old != nil || object.Kind.Group != "" || keys == nil {
		return nil
	}
	quotas := p.server.Kind("", "resourcequotas").In(object.GetNamespace())
	for _, quota := range quotas {
		for _, key := range keys {
			used, hard, limits := statusOf(quota, key)
			if limits && used+1 > hard {
				return api.Forbid(object.Kind, object.GetName(), fmt.Sprintf("exceeded quota: %s, requested: %s=1, used: %s=%d, limited: %s=%d",
					quota.GetName(), key, key, used, key, hard))
			}
		}
	}
	if dryRun {
		return nil
	}
	for _, quota := range quotas {
		u := quota.DeepCopy()
		for _, key := range keys {
			if used, _, limits := statusOf(quota, key); limits {
				if err := unstructured.SetNestedField(u.Object, fmt.Sprint(used+1), "status", "used", key); err != nil {
					panic(err)
				}
			}
		}
		if _, refusal := p.server.Update("system:apiserver", quota, "status", u); refusal != nil {
			panic(refusal)
		}
	}
	return nil
}

// statusOf returns what a quota has counted for a key; false if it limits nothing yet.
func statusOf(quota *api.Record, key string) (used, hard int64, limits bool) {
	text, found, _ := unstructured.NestedString(quota.Object, "status", "hard", key)
	if !found {
		return 0, 0, false
	}
	usedText, _, _ := unstructured.NestedString(quota.Object, "status", "used", key)
	return valueOf(usedText), valueOf(text), true
}

func valueOf(text string) int64 {
	quantity, err := resource.ParseQuantity(strings.TrimSpace(text))
	if err != nil {
		return 0
	}
	return quantity.Value()
}
