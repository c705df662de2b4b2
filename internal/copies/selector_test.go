package copies

import (
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

// For random requirements and labels, the answer is the same as that of Kubernetes' own selector.
func TestSelector(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	keys, values := []string{"a", "b", "c", "d"}, []string{"1", "2", "3"}
	one := func(of []string) string { return of[random.IntN(len(of))] }
	matched := 0
	for range 20_000 {
		var terms []string
		for range random.IntN(5) {
			key := one(keys)
			terms = append(terms, one([]string{key, "!" + key, key + "=" + one(values), key + "!=" + one(values),
				key + " in (" + one(values) + "," + one(values) + ")", key + " notin (" + one(values) + "," + one(values) + ")",
				key + ">" + one(values), key + "<" + one(values)}))
		}
		text := strings.Join(terms, ",")
		parsed, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		set := labels.Set{}
		for range random.IntN(5) {
			set[one(keys)] = one(values)
		}
		want := parsed.Matches(set)
		if want {
			matched++
		}
		if got := newSelector(parsed).Matches(set); got != want {
			t.Fatalf("%q of %v: %t, want %t", text, set, got, want)
		}
	}
	if matched < 1000 {
		t.Errorf("only %d matched", matched)
	}
}
