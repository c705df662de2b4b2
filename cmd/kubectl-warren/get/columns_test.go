package get

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
			"metadata": map[string]any{"name": name, "labels": map[string]any{"a.b/c": "x\ny"}}, "spec": map[string]any{"containers": containers, "replicas": int64(3)},
		}}
	}
	list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{pod("one", "a", "b"), pod("two")}}
	full := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{pod("one", "a", "b")}}
	for name, c := range map[string]struct {
		format, want, err string
		of                *unstructured.UnstructuredList
	}{
		"several":       {format: "custom-columns=NAME:.metadata.name,IMAGES:{.spec.containers[*].image},N:spec.replicas", want: "NAME IMAGES N\none a,b 3\ntwo <none> 3\n"},
		"a file":        {format: "custom-columns-file=" + file, want: "NAME IMAGES\none a,b\ntwo <none>\n"},
		"escaped":       {format: `custom-columns=L:.metadata.labels.a\.b/c`, want: "L\nx\\ny\nx\\ny\n"},
		"a comma":       {format: "custom-columns=I:.spec.containers[0,1].image", of: full, want: "I\na,b\n"},
		"no path":       {format: "custom-columns=NAME", err: `-o custom-columns: column "NAME" must be HEAD:PATH, such as NAME:.metadata.name`},
		"nothing":       {format: "custom-columns=", err: `-o custom-columns: column "" must be HEAD:PATH, such as NAME:.metadata.name`},
		"no sound path": {format: "custom-columns=NAME:.a[", err: "-o custom-columns: path \".a[\" of column NAME: unterminated array"},
		"no file":       {format: "custom-columns-file=" + file + "x", err: "-o custom-columns-file: open " + file + "x: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := newColumnsPrinter(c.format, false)
			var out strings.Builder
			if err == nil {
				err = p.PrintObj(cmp.Or(c.of, list), &out)
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
	if p, err := newColumnsPrinter("json", false); p != nil || err != nil {
		t.Errorf("another format: %v, %v", p, err)
	}
}
