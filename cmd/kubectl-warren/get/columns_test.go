package get

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

func TestColumns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "columns")
	if err := os.WriteFile(file, []byte("NAME          IMAGES\n.metadata.name .spec.containers[*].image\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pod := func(name string, images ...any) unstructured.Unstructured {
		var containers []any
		for _, image := range images {
			containers = append(containers, map[string]any{"image": image})
		}
		return unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": name, "labels": map[string]any{"a.b/c": "x\ny"}}, "spec": map[string]any{"containers": containers,
				"replicas": int64(3)},
		}}
	}
	for name, c := range map[string]struct{ format, want, err string }{
		"several": {format: "custom-columns=NAME:.metadata.name,IMAGES:{.spec.containers[*].image},N:spec.replicas",
			want: "NAME IMAGES N\none a,b 3\ntwo <none> 3\n"},
		"a file":  {format: "custom-columns-file=" + file, want: "NAME IMAGES\none a,b\ntwo <none>\n"},
		"escaped": {format: `custom-columns=L:.metadata.labels.a\.b/c`, want: "L\nx\\ny\nx\\ny\n"},
		"no path": {format: "custom-columns=NAME", err: "unexpected custom-columns spec: NAME, expected <header>:<json-path-expr>"},
		"nothing": {format: "custom-columns=", err: "custom-columns format specified but no custom columns given"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &options{print: genericclioptions.NewPrintFlags("")}
			o.print.OutputFormat = &c.format
			p, err := o.newPrinter()
			var out strings.Builder
			if err == nil {
				err = p.objects.PrintObj(&unstructured.UnstructuredList{Items: []unstructured.Unstructured{pod("one", "a", "b"), pod("two")}}, &out)
			}
			message := ""
			if err != nil {
				message = err.Error()
			}
			if diff := gocmp.Diff(c.err, message); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}
			var got strings.Builder
			for line := range strings.Lines(out.String()) {
				got.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
			}
			if diff := gocmp.Diff(c.want, got.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
