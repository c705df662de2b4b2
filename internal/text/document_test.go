package text_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/warren-tenancy/warren/internal/text"
)

// SEC-X38: a document keeps every character that a user may have written. JSON has no character that a terminal would obey.
func TestDocuments(t *testing.T) {
	const common, tags = 0x11000, 0xe0000 // characters of block tags are invisible
	for i := range rune(common + 0x80) {
		r := i
		if i >= common {
			r = tags + i - common
		}
		given := map[string]string{"key": "a" + string(r) + "b"}
		document, err := text.EncodeYAML(given)
		var got map[string]string
		if err == nil {
			err = yaml.Unmarshal(document, &got)
		}
		if err != nil || got["key"] != given["key"] {
			t.Errorf("SEC-X38 %U: YAML %q, read as %q (%v)", r, document, got["key"], err)
		}
		if document, err = text.EncodeJSON(given); err == nil {
			err = json.Unmarshal(document, &got)
		}
		flat := strings.ReplaceAll(string(document), "\n", "")
		if err != nil || got["key"] != given["key"] || text.Escape(flat) != flat {
			t.Errorf("SEC-X38 %U: JSON %q, read as %q (%v)", r, document, got["key"], err)
		}
	}
}
