package graph_test

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/graph"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/test/forests"
)

var update = flag.Bool("update", false, "write docs/pictures/forest.svg")

// The picture in the README is the one that the command draws of the forest in the specification.
func TestPicture(t *testing.T) {
	const name = "../../../docs/pictures/forest.svg"
	drawn, _ := drawAs(t, buildForest(t, forests.Specified(), "payments", "shop", "base"), "svg", graph.Options{Depth: -1})
	if *update {
		if err := os.WriteFile(name, []byte(drawn), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if stored, err := os.ReadFile(name); err != nil || string(stored) != drawn {
		t.Errorf("docs/pictures/forest.svg is not what the command draws (%v): go test ./cmd/kubectl-warren/graph -run Picture -update", err)
	}
}

// lists starts an API server that has one tenant with that many sub-namespaces. It returns its address, and by method
// and path how often each list was requested.
func lists(t *testing.T, subs int) (address string, asked map[string]int) {
	asked = map[string]int{}
	item := func(name, label, value string) string {
		return fmt.Sprintf(`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":%q,"uid":%[1]q,"labels":{%q:%q}}}`,
			name, label, value)
	}
	items := []string{item("payments", v1alpha1.LabelType, v1alpha1.TypeRoot)}
	for i := range subs {
		items = append(items, item(fmt.Sprint("pay-", i), v1alpha1.LabelParent, "payments"))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[r.Method+" "+r.URL.Path]++
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/namespaces"):
			_, _ = w.Write([]byte(`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{},"items":[` +
				strings.Join(items, ",") + `]}`))
		default:
			kind := map[string]string{"subnamespaces": "SubNamespaceList", "lnamespaces": "LNamespaceList",
				"hierarchyconfigurations": "HierarchyConfigurationList"}
			_, _ = w.Write([]byte(`{"apiVersion":"tenancy.warren.dev/v1alpha1","kind":"` + kind[filepath.Base(r.URL.Path)] +
				`","metadata":{},"items":[]}`))
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

// runGraph carries out the command and returns what it writes. If out is not nil, it is the command's standard output,
// and only the rest is returned.
func runGraph(t *testing.T, address string, out *os.File, args ...string) (written string, err error) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	flags := genericclioptions.NewConfigFlags(true)
	flags.APIServer = &address
	var text bytes.Buffer
	inv := &invocation.Invocation{Flags: flags, Streams: genericiooptions.IOStreams{Out: &text, ErrOut: &text}}
	if out != nil {
		inv.Streams.Out = terminal.NewWriter(out)
	}
	cmd := graph.Command(inv)
	cmd.SetArgs(append([]string{}, args...)) // for nil, cobra would take os.Args
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return text.String(), err
}

func TestCommand(t *testing.T) {
	address, asked := lists(t, 0)
	t.Run("four lists, whatever is drawn", func(t *testing.T) {
		written, err := runGraph(t, address, nil, "-o", "mermaid")
		if err != nil || !strings.Contains(written, `"payments<br>root`) {
			t.Errorf("got %v, %s", err, written)
		}
		for path, times := range asked {
			if times != 1 || len(asked) != 4 {
				t.Errorf("%s was asked %d times, of %d paths", path, times, len(asked))
			}
		}
	})
	t.Run("WEB-G9 html to a terminal is an error", func(t *testing.T) {
		terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
		if err != nil {
			t.Skip("no terminal: ", err)
		}
		defer func() { _ = terminal.Close() }()
		if _, err = runGraph(t, address, terminal); err == nil || err.Error() != "-o html writes a page: give --file" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("WEB-G9 a --file in a folder that does not exist is an error", func(t *testing.T) {
		_, err := runGraph(t, address, nil, "--file", filepath.Join(t.TempDir(), "none", "forest.html"))
		if err == nil || !strings.Contains(err.Error(), "does not exist") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("WEB-G9 a file that can't be replaced stays, and nothing is left beside it", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "forest.html", "full"), 0o755); err != nil {
			t.Fatal(err)
		}
		_, err := runGraph(t, address, nil, "--file", filepath.Join(dir, "forest.html"))
		left, _ := os.ReadDir(dir)
		if err == nil || len(left) != 1 {
			t.Errorf("got %v, and %d files", err, len(left))
		}
	})
	t.Run("a file is its owner's alone", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "forest.svg")
		if _, err := runGraph(t, address, nil, "-o", "svg", "-f", file); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("got %v, %v", info.Mode(), err)
		}
	})
}
