package config_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/test/devcluster"
)

// What the operator takes, in bytes: see "Informers and memory" in docs/reference/configuration.md.
const (
	withoutWork   = 64 << 20
	copies, aCopy = 100000, 1 << 10
	anInformer    = 70 << 10
)

func TestDefaultsFitIntoMemory(t *testing.T) {
	t.Run("INF-I79 64 MiB, 1 KiB for each of 100,000 copies, and 70 KiB for each of informers.maxInformers fit into GOMEMLIMIT; that is "+
		"below the memory limit", func(t *testing.T) {
		manifests, err := devcluster.Render("config/overlays/standard")
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, u := range manifests {
			if u.GetKind() != "Deployment" || u.GetName() != "warren-controller-manager" {
				continue
			}
			found = true
			c := read[appsv1.Deployment](t, u.Object).Spec.Template.Spec.Containers[0]
			soft := memoryLimit(t, c.Env[0].Name, c.Env[0].Value)
			hard := c.Resources.Limits.Memory().Value()
			need := int64(withoutWork + copies*aCopy + configfile.Default().Informers.MaxInformers*anInformer)
			if need > soft || soft >= hard {
				t.Errorf("%d informers and %d copies need %d MiB, GOMEMLIMIT is %d MiB, the limit of the container %d MiB",
					configfile.Default().Informers.MaxInformers, copies, need>>20, soft>>20, hard>>20)
			}
		}
		if !found {
			t.Error("no Deployment warren-controller-manager")
		}
	})
}

// memoryLimit reads GOMEMLIMIT, whose units are those of a Quantity and a B.
func memoryLimit(t *testing.T, name, value string) int64 {
	t.Helper()
	if name != "GOMEMLIMIT" {
		t.Fatalf("the first variable is %s, not GOMEMLIMIT", name)
	}
	q, err := resource.ParseQuantity(strings.TrimSuffix(value, "B"))
	if err != nil {
		t.Fatal(err)
	}
	return q.Value()
}
