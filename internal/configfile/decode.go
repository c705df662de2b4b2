package configfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	kjson "sigs.k8s.io/json"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

// accurateKeys are the top-level keys of the configuration file of Accurate (another operator) that have a place in ours.
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

// strict decodes into the object that it is given.
var strict = serializer.NewSerializerWithOptions(anyKind{}, runtime.NewScheme(), runtime.NewScheme(),
	serializer.SerializerOptions{Strict: true})

// anyKind lets the serializer decode a file whatever its apiVersion and kind are: validateConfiguration checks these.
type anyKind struct{}

// Interpret implements serializer.MetaFactory.
func (anyKind) Interpret([]byte) (*schema.GroupVersionKind, error) {
	return &schema.GroupVersionKind{}, nil
}

// decoding is the result of decoding a document over the defaults.
type decoding struct {
	config     *config.OperatorConfiguration
	problems   []problem
	mistyped   []string // the paths of values with a wrong type; they are not in config
	duplicates bool
}

// decodeDocument decodes the document. Where a key is given twice, it decodes the last value, or the first one if the order is backward.
func decodeDocument(document *yaml.Node, order keyOrder) decoding {
	c := converter{order: order, keys: map[string]keyPlace{}}
	data := c.convertDocument(document)
	d := decoding{config: defaultsBeforeFile(), problems: c.problems, mistyped: c.mistyped}
	d.config.APIVersion, d.config.Kind = "", ""
	_, _, err := strict.Decode(data, nil, d.config)
	refused, isStrict := runtime.AsStrictDecodingError(err)
	switch {
	case isStrict:
		for _, e := range refused.Errors() {
			d.addStrictProblem(e, c.keys)
		}
	case err != nil:
		d.problems = append(d.problems, problem{text: err.Error()})
	}
	return d
}

// addStrictProblem adds a problem that the serializer found: a key that is unknown or given twice.
func (d *decoding) addStrictProblem(err error, keys map[string]keyPlace) {
	var located kjson.FieldError
	if !errors.As(err, &located) {
		d.problems = append(d.problems, problem{text: err.Error()})
		return
	}
	place := keys[located.FieldPath()]
	if place.known == nil {
		d.duplicates = true
		d.problems = append(d.problems, problem{path: place.path, text: fmt.Sprintf("key %q already set", place.key)})
		return
	}
	hint := "known here: " + strings.Join(place.known, ", ")
	if ours, ok := accurateKeys[place.path]; ok {
		hint = "use " + ours
	}
	d.problems = append(d.problems, problem{path: place.path, text: fmt.Sprintf("unknown field %q (%s)", place.path, hint)})
}

// isInMistypedValue reports whether the value at path, a value that contains it, or a part of it had a wrong type.
func (d *decoding) isInMistypedValue(path string) bool {
	return slices.ContainsFunc(d.mistyped, func(mistyped string) bool {
		return containsPath(path, mistyped) || containsPath(mistyped, path)
	})
}

// containsPath reports whether the value at path is the one at outer, or a part of it.
func containsPath(outer, path string) bool {
	rest, found := strings.CutPrefix(path, outer)
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
