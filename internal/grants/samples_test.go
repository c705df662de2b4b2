package grants_test

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/warren-tenancy/warren/internal/grants"
)

// book is the folder of the documentation.
const book = "../../docs"

// sampleFiles are the files in docs/resource-samples that hold access objects.
var sampleFiles = []string{
	"self-impersonator-cluster-role.yaml", "self-impersonator-cluster-role-binding.yaml",
	"sudoer-impersonator-cluster-role.yaml", "sudoer-impersonator-cluster-role-binding.yaml",
	"sudoer-group-cluster-admin-role-binding.yaml",
	"sudoer-lnamespace-edit-cluster-role.yaml", "sudoer-lnamespace-edit-cluster-role-binding.yaml",
	"users-role-binding.yaml",
}

// samples returns the access objects of payments in docs/resource-samples, without the second owner of the shared pair.
func samples(t *testing.T) grants.Actual {
	t.Helper()
	return ofOneOwner(asShown(t))
}

// read reads access objects from a file, without the second owner of the shared pair.
func read(t *testing.T, path string) grants.Actual {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return ofOneOwner(objectsIn(t, string(text)))
}

func ofOneOwner(objects grants.Actual) grants.Actual {
	for _, object := range objects {
		if references := object.GetOwnerReferences(); len(references) == 2 {
			object.SetOwnerReferences(references[:1])
		}
	}
	return objects
}

// asShown reads sampleFiles, each of which has one object.
func asShown(t *testing.T) grants.Actual {
	t.Helper()
	result := grants.Actual{}
	for _, file := range sampleFiles {
		text, err := os.ReadFile(filepath.Join(book, "resource-samples", file))
		if err != nil {
			t.Fatal(err)
		}
		objects := objectsIn(t, string(text))
		if len(objects) != 1 {
			t.Fatalf("%s holds %d objects, want 1", file, len(objects))
		}
		maps.Copy(result, objects)
	}
	return result
}

// objectsIn reads access objects from YAML, one in each document.
func objectsIn(t *testing.T, text string) grants.Actual {
	t.Helper()
	result := grants.Actual{}
	decoder := yaml.NewYAMLReader(newBuffered([]byte(text)))
	for {
		document, err := decoder.Read()
		if errors.Is(err, io.EOF) {
			return result
		}
		if err != nil {
			t.Fatal(err)
		}
		kind := metav1.TypeMeta{}
		if err := yaml.Unmarshal(document, &kind); err != nil {
			t.Fatal(err)
		}
		object := grants.Key{Kind: kind.Kind}.New()
		if err := yaml.UnmarshalStrict(document, object); err != nil {
			t.Fatalf("%s: %v", document, err)
		}
		result[grants.KeyOf(object)] = object
	}
}

// A part of case ACC-R01: the other tests read every sample.
func TestEverySampleIsRead(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(book, "resource-samples", "*role*.yaml"))
	if err != nil || len(files) != len(sampleFiles) {
		t.Errorf("docs/resource-samples holds %q, %v; want %q", files, err, sampleFiles)
	}
}
