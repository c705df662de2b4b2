package v1alpha1

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// duplicateChoice says which value of a key that stands twice is decoded.
type duplicateChoice bool

const (
	firstValue duplicateChoice = false
	lastValue  duplicateChoice = true
)

// accurateKeys are the top-level keys of Accurate's file that have a place in ours.
var accurateKeys = map[string]string{
	"labelKeys":                      "inheritance.labels",
	"annotationKeys":                 "inheritance.annotations",
	"subNamespaceLabelKeys":          "subNamespaces.labels",
	"subNamespaceAnnotationKeys":     "subNamespaces.annotations",
	"watches":                        "propagation.kinds",
	"propagateLabelKeyExcludes":      "propagation.excludedLabels",
	"propagateAnnotationKeyExcludes": "propagation.excludedAnnotations",
	"namingPolicies":                 "subNamespaces.namingPolicies",
}

// decoder puts a YAML document into Go values by their json tags and goes on after a problem. The JSON and YAML
// libraries can't do that: they stop at the first wrong type, and tell duplicate keys by line, not by path.
type decoder struct {
	pick       duplicateChoice
	duplicates bool
	problems   []problem
	mistyped   []string // paths
}

func (d *decoder) document(n *yaml.Node, c *OperatorConfiguration) {
	d.value(nil, n, reflect.ValueOf(c).Elem())
}

// value decodes n, unless it is null, over what into holds. Paths of the root are nil.
func (d *decoder) value(at *field.Path, n *yaml.Node, into reflect.Value) {
	n = resolve(n)
	if isNull(n) {
		return
	}
	switch target := into.Addr().Interface().(type) {
	case *metav1.Duration:
		d.duration(at, n, target)
		return
	case *resource.Quantity:
		d.quantity(at, n, target)
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		d.value(at, n, into.Elem())
	case reflect.Struct:
		d.structure(at, n, into)
	case reflect.Map:
		d.mapping(at, n, into)
	case reflect.Slice:
		d.list(at, n, into)
	case reflect.String:
		d.scalar(at, n, into, "a string", "!!str")
	case reflect.Bool:
		d.scalar(at, n, into, "true or false", "!!bool")
	case reflect.Float32:
		d.scalar(at, n, into, "a number", "!!int", "!!float")
	default:
		d.scalar(at, n, into, "a whole number", "!!int")
	}
}

func (d *decoder) structure(at *field.Path, n *yaml.Node, into reflect.Value) {
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(into.Type()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[name] = f.Index
		}
	}
	child := func(key string) *field.Path { return at.Child(key) }
	d.pairs(at, n, child, func(path *field.Path, key string, value *yaml.Node) {
		index, known := fields[key]
		if !known {
			d.unknown(path, at == nil, key, slices.Sorted(maps.Keys(fields)))
			return
		}
		d.value(path, value, into.FieldByIndex(index))
	})
}

func (d *decoder) unknown(path *field.Path, topLevel bool, key string, known []string) {
	hint := "known here: " + strings.Join(known, ", ")
	if place, ok := accurateKeys[key]; ok && topLevel {
		hint = "use " + place
	}
	d.report(path, fmt.Sprintf("unknown field %q (%s)", path.String(), hint))
}

func (d *decoder) mapping(at *field.Path, n *yaml.Node, into reflect.Value) {
	if into.IsNil() {
		into.Set(reflect.MakeMap(into.Type()))
	}
	d.pairs(at, n, at.Key, func(path *field.Path, key string, value *yaml.Node) {
		element := reflect.New(into.Type().Elem()).Elem()
		d.item(path, value, element)
		into.SetMapIndex(reflect.ValueOf(key), element)
	})
}

// pairs calls decode for each key of n once, and reports those that stand there again.
func (d *decoder) pairs(at *field.Path, n *yaml.Node, child func(key string) *field.Path, decode func(path *field.Path, key string, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.mistype(at, n, "a mapping")
		return
	}
	var order []string
	values := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolve(n.Content[i]).Value, n.Content[i+1]
		_, again := values[key]
		if again {
			d.duplicates = true
			d.report(child(key), fmt.Sprintf("key %q already set", key))
		} else {
			order = append(order, key)
		}
		if !again || d.pick == lastValue {
			values[key] = value
		}
	}
	for _, key := range order {
		decode(child(key), key, values[key])
	}
}

func (d *decoder) list(at *field.Path, n *yaml.Node, into reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.mistype(at, n, "a list")
		return
	}
	items := reflect.MakeSlice(into.Type(), len(n.Content), len(n.Content))
	for i, content := range n.Content {
		d.item(at.Index(i), content, items.Index(i))
	}
	into.Set(items)
}

// item decodes what stands in a list or a map, where null has no default to stand for.
func (d *decoder) item(at *field.Path, n *yaml.Node, into reflect.Value) {
	if isNull(resolve(n)) {
		d.mistype(at, n, "given")
		return
	}
	d.value(at, n, into)
}

func (d *decoder) scalar(at *field.Path, n *yaml.Node, into reflect.Value, want string, tags ...string) {
	if n.Kind != yaml.ScalarNode || !slices.Contains(tags, n.ShortTag()) || n.Decode(into.Addr().Interface()) != nil {
		d.mistype(at, n, want)
	}
}

func (d *decoder) duration(at *field.Path, n *yaml.Node, into *metav1.Duration) {
	value, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		d.mistype(at, n, "a duration such as 30s, 5m or 24h")
		return
	}
	into.Duration = value
}

func (d *decoder) quantity(at *field.Path, n *yaml.Node, into *resource.Quantity) {
	value, err := resource.ParseQuantity(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		d.mistype(at, n, "a number of bytes such as 1048576, 1Mi or 1Gi")
		return
	}
	*into = value
}

func (d *decoder) report(at *field.Path, text string) {
	d.problems = append(d.problems, problem{path: at.String(), text: text})
}

func (d *decoder) mistype(at *field.Path, n *yaml.Node, want string) {
	d.mistyped = append(d.mistyped, at.String())
	d.report(at, fmt.Sprintf("must be %s, is %s", want, describe(resolve(n))))
}

// isMistyped says whether the value at path, or one that it is part of, could not be decoded.
func (d *decoder) isMistyped(path string) bool {
	return slices.ContainsFunc(d.mistyped, func(mistyped string) bool {
		rest, below := strings.CutPrefix(path, mistyped)
		return below && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "null"
	case n.ShortTag() == "!!str":
		return fmt.Sprintf("the string %q", n.Value)
	case n.ShortTag() == "!!int", n.ShortTag() == "!!float":
		return "the number " + n.Value
	}
	return n.Value
}
