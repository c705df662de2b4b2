package cases

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const source = `package x_test

var _ = Describe("deletion", func() {
	It("ABC-D4 deletes "+
		"the namespace; ABC-D10, ABC-D9: two", func() { By("ABC-X1 step", func() {}) })
	DescribeTable("rows", check, Entry("ABC-E1 an entry", 1))
	inBothModes("ABC-S1 in both modes", "s1", func() { Expect(1).To(Equal(1), "ABC-X2") })
})

func TestAll(t *testing.T) {
	t.Run("ABC-P1 refuses a name: "+name, all)
	t.Run(fmt.Sprintf("ABC-P2 after %d writes", n), all)
	t.Run(fmt.Sprintf("ABC-P3 %s", name), all)
	t.Run(fmt.Sprint("ABC-P4 seed ", seed), all)
	for name := range map[string]bool{"ABC-T1 a key": true} {
		t.Run(name, func(t *testing.T) { t.Errorf("ABC-X3 %s", name) })
	}
	_ = map[string]string{"ABC-T2": "a value"}
	_ = []row{{name: "ABC-T3 a field", why: "ABC-X4"}}
}
`

func TestFind(t *testing.T) {
	root := t.TempDir()
	for file, text := range map[string]string{"a/x_test.go": source, "a/x.go": source, ".dev/x_test.go": source} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Find(root)
	if err != nil {
		t.Fatal(err)
	}
	const file = "a/x_test.go"
	want := []Case{
		{"ABC-D4", "deletes the namespace", file}, {"ABC-D9", "two", file}, {"ABC-D10", "two", file},
		{"ABC-E1", "an entry", file}, {"ABC-P1", "refuses a name", file}, {"ABC-P2", "after … writes", file},
		{"ABC-P3", "", file}, {"ABC-P4", "seed", file}, {"ABC-S1", "in both modes", file}, {"ABC-T1", "a key", file},
		{"ABC-T2", "a value", file}, {"ABC-T3", "a field", file},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cases (-want +got):\n%s", diff)
	}
}
