package text

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// EncodeJSON returns a value as indented JSON, in which each character that a terminal would obey is escaped.
func EncodeJSON(value any) ([]byte, error) {
	document, err := json.MarshalIndent(value, "", "    ")
	return append(escapeJSON(document), '\n'), err
}

// EncodeYAML returns a value as YAML. The encoder refuses control characters as they are, and takes their escapes.
func EncodeYAML(value any) ([]byte, error) {
	document, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(escapeJSON(document))
}

// escapeJSON escapes characters in the strings of a JSON document, which has line feeds between its values only.
func escapeJSON(document []byte) []byte {
	var escaped []byte
	for _, r := range string(document) {
		if refused := r == '\ufffe' || r == '\uffff'; refused || obeyed(r) && r != '\n' {
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		} else {
			escaped = utf8.AppendRune(escaped, r)
		}
	}
	return escaped
}
