package text

import (
	"encoding/json"
	"unicode"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// EncodeJSON returns a value as indented JSON, in which each character that a terminal would obey is escaped.
func EncodeJSON(value any) ([]byte, error) {
	document, err := json.MarshalIndent(value, "", "    ")
	return append(EscapeJSON(document), '\n'), err
}

// EncodeYAML returns a value as YAML. The encoder refuses unescaped control characters. It accepts escapes, but no pair of surrogates, so
// characters beyond U+FFFF are not escaped.
func EncodeYAML(value any) ([]byte, error) {
	document, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(escapeUpTo('\uffff', document))
}

// EscapeJSON escapes, in a JSON document, the characters that a terminal would obey, U+FFFE and U+FFFF. It leaves line feeds, which such
// a document has only between its values.
func EscapeJSON(document []byte) []byte { return escapeUpTo(unicode.MaxRune, document) }

// escapeUpTo does what EscapeJSON does, but only for characters up to last.
func escapeUpTo(last rune, document []byte) []byte {
	var escaped []byte
	for _, r := range string(document) {
		if refused := r == '\ufffe' || r == '\uffff'; r <= last && (refused || obeyed(r) && r != '\n') {
			escaped = appendUnits(escaped, r)
		} else {
			escaped = utf8.AppendRune(escaped, r)
		}
	}
	return escaped
}
