package get

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

func TestEachKindHasItsNamespacesInTheWarning(t *testing.T) {
	of := func(resource string, each ...answer) *answers {
		mapping := &meta.RESTMapping{Resource: schema.GroupVersionResource{Version: "v1", Resource: resource}}
		return &answers{&requests{mapping: mapping}, each}
	}
	streams, _, _, warned := genericiooptions.NewTestIOStreams()
	secrets := of("secrets", answer{namespace: "web", refused: true}, answer{namespace: "db", refused: true}, answer{namespace: "ops"})
	pods := of("pods", answer{namespace: "web"}, answer{namespace: "db"}, answer{namespace: "ops", refused: true})
	if err := warnRefused(&invocation.Invocation{Streams: streams}, []*answers{secrets, pods}, 3); err != nil {
		t.Fatal(err)
	}
	if got, want := warned.String(), "Warning: you may not list secrets in db, web; pods in ops: not shown\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
