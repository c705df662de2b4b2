package text_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/warren-tenancy/warren/internal/text"
)

// SEC-X38: whatever character somebody has written, a document holds it; in JSON none is there that a terminal obeys.
func TestDocuments(t *testing.T) {
	const common, tags = 0x11000, 0xe0000 // tags are letters that no one sees
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
