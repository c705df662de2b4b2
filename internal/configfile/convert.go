package configfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

// keyOrder is the order in which the converter writes the keys of a mapping. If a key is given twice, the decoder takes the value that is
// written last.
type keyOrder bool

const (
	forward  keyOrder = false
	backward keyOrder = true
)

// converter turns YAML into the JSON that the strict serializer decodes. A serializer stops at the first value of a wrong type, and its
// path to that value has no list indexes. So the converter itself reports all values of a wrong type, and leaves them out. It also leaves
// out keys without a value.
type converter struct {
	order    keyOrder
	problems []problem
	mistyped []string
	keys     map[string]keyPlace // by the path that the serializer gives to a key
}

// keyPlace describes where in the file a key of a mapping is.
type keyPlace struct {
	path, key string
	known     []string // for an unknown key: the keys that are known at its place
}

func (c *converter) convertDocument(n *yaml.Node) []byte {
	return c.convertValue(nil, n, reflect.TypeFor[config.OperatorConfiguration]())
}

// convertValue returns n as JSON that decodes into type t; nil if n has a wrong type. The path of the root is nil.
func (c *converter) convertValue(at *field.Path, n *yaml.Node, t reflect.Type) []byte {
	n = resolveYAMLAlias(n)
	switch {
	case t.Kind() == reflect.Pointer:
		return c.convertValue(at, n, t.Elem())
	case isScalarType(t):
		if data, err := marshalScalar(n); err == nil && json.Unmarshal(data, reflect.New(t).Interface()) == nil {
			return data
		}
	case t.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode:
		return c.convertList(at, n, t.Elem())
	case t.Kind() != reflect.Slice && n.Kind == yaml.MappingNode:
		return c.convertMapping(at, n, t)
	}
	c.recordMistype(at, n, "be "+describeGoType(t))
	return nil
}

// marshalScalar returns a string, a number or a truth value as JSON. It fails for other nodes, and for .nan and .inf, which JSON doesn't
// have.
func marshalScalar(n *yaml.Node) ([]byte, error) {
	if n.Kind != yaml.ScalarNode || !slices.Contains([]string{"!!str", "!!bool", "!!int", "!!float"}, n.ShortTag()) {
		return nil, errors.New("no scalar of JSON")
	}
	var value any
	if err := n.Decode(&value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

func (c *converter) convertList(at *field.Path, n *yaml.Node, t reflect.Type) []byte {
	var items [][]byte
	for i, item := range n.Content {
		data := c.convertItem(at.Index(i), item, t)
		if data == nil {
			data = []byte("null") // so that the items after it keep their indexes
		}
		items = append(items, data)
	}
	return slices.Concat([]byte("["), bytes.Join(items, []byte(",")), []byte("]"))
}

// convertItem converts an item of a list or map. null is refused, because an item has no default.
func (c *converter) convertItem(at *field.Path, n *yaml.Node, t reflect.Type) []byte {
	if isNullNode(resolveYAMLAlias(n)) {
		c.recordMistype(at, n, "have a value")
		return nil
	}
	return c.convertValue(at, n, t)
}

func (c *converter) convertMapping(at *field.Path, n *yaml.Node, t reflect.Type) []byte {
	var pairs [][]byte
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := resolveYAMLAlias(n.Content[i]).Value
		if value := c.convertKeyedValue(at, key, n.Content[i+1], t); value != nil {
			name, _ := json.Marshal(key) // Marshal refuses no string
			pairs = append(pairs, slices.Concat(name, []byte(":"), value))
		}
	}
	if c.order == backward {
		slices.Reverse(pairs)
	}
	return slices.Concat([]byte("{"), bytes.Join(pairs, []byte(",")), []byte("}"))
}

// convertKeyedValue converts the value of a key in a mapping of type t. It returns nil for a value that is left out.
func (c *converter) convertKeyedValue(at *field.Path, key string, n *yaml.Node, t reflect.Type) (value []byte) {
	path := at.Child(key)
	place := keyPlace{path: path.String(), key: key}
	if t.Kind() == reflect.Map {
		place.path = at.Key(key).String()
		value = c.convertItem(at.Key(key), n, t.Elem())
	} else if fields := jsonFieldsOf(t); fields[key] == nil {
		place.known = slices.Sorted(maps.Keys(fields))
		value = []byte("null")
	} else if !isNullNode(resolveYAMLAlias(n)) {
		value = c.convertValue(path, n, fields[key])
	}
	c.keys[path.String()] = place
	return value
}

func (c *converter) recordMistype(at *field.Path, n *yaml.Node, want string) {
	c.mistyped = append(c.mistyped, at.String())
	c.problems = append(c.problems, problem{path: at.String(),
		text: fmt.Sprintf("must %s, is %s", want, describeYAMLNode(resolveYAMLAlias(n)))})
}

// jsonFieldsOf returns the types of the fields of a struct, by their keys.
func jsonFieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[name] = f.Type
		}
	}
	return fields
}

// isScalarType reports whether values of type t are strings, numbers or truth values in a file.
func isScalarType(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Map, reflect.Pointer:
		return false
	case reflect.Struct:
		return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
	}
	return true
}

func describeGoType(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[metav1.Duration]():
		return "a duration such as 30s, 5m or 24h"
	case reflect.TypeFor[resource.Quantity]():
		return "a number of bytes such as 1048576, 1Mi or 1Gi"
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "a mapping"
	case reflect.Slice:
		return "a list"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32:
		return "a finite number"
	}
	return "a whole number"
}
