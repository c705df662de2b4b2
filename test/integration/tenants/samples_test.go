package tenants_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/warren-tenancy/warren/test/devcluster"
)

// sampleNames are the names in docs/resource-samples that a case replaces by its own.
var sampleNames = regexp.MustCompile(`\b(payments|shop|alice|bob|dave|mia|pay-devs|pay-oncall|ci)\b`)

// sampleTenants are the LNamespaces that make the samples.
func (f *fixture) sampleTenants() []client.Object {
	GinkgoHelper()
	return f.sampled("lnamespace.yaml")
}

// samples are the access objects of docs/resource-samples, with the UIDs of the LNamespaces that exist.
func (f *fixture) samples(ctx context.Context) []client.Object {
	GinkgoHelper()
	uids := []string{"UID_PAYMENTS", string(f.get(ctx, f.own("payments")).UID), "UID_SHOP", string(f.get(ctx, f.own("shop")).UID)}
	return f.sampled("*role*.yaml", uids...)
}

// sampled reads samples under the names of this case. values are pairs of a text and its replacement.
func (f *fixture) sampled(pattern string, values ...string) []client.Object {
	GinkgoHelper()
	root, err := devcluster.Root()
	Expect(err).NotTo(HaveOccurred())
	files, err := filepath.Glob(filepath.Join(root, "docs", "resource-samples", pattern))
	Expect(err).NotTo(HaveOccurred())
	Expect(files).NotTo(BeEmpty(), "docs/resource-samples/%s", pattern)
	var objects []client.Object
	for _, file := range files {
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		text = sampleNames.ReplaceAllFunc(text, func(name []byte) []byte { return []byte(f.own(strings.TrimPrefix(string(name), "pay-"))) })
		objects = append(objects, objectsIn(file, strings.NewReplacer(values...).Replace(string(text)))...)
	}
	return objects
}

// objectsIn reads objects of known kinds, one per document. A field that the kind does not have is an error.
func objectsIn(file, text string) []client.Object {
	GinkgoHelper()
	var objects []client.Object
	for stream := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewBufferString(text))); ; {
		document, err := stream.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		Expect(err).NotTo(HaveOccurred(), file)
		kind := metav1.TypeMeta{}
		Expect(yaml.Unmarshal(document, &kind)).To(Succeed(), file)
		object, err := devcluster.Scheme().New(kind.GroupVersionKind())
		Expect(err).NotTo(HaveOccurred(), file)
		Expect(yaml.UnmarshalStrict(document, object)).To(Succeed(), file)
		object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // as the client returns them
		objects = append(objects, object.(client.Object))
	}
}
