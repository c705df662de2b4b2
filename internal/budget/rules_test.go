package budget_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/warren-tenancy/warren/internal/budget"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// row returns a namespace below limit 0 whose share is counted.
func row(name string, share, used int64) budget.Row {
	return budget.Row{Namespace: name, Under: []int{0}, Spec: budget.Amounts{pods: share}, Counted: budget.Amounts{pods: share},
		Used: budget.Amounts{pods: used}}
}

func refused(requested budget.Amounts, again bool) budget.Refusal {
	return budget.Refusal{At: noon.Add(-time.Second), Requested: requested, Again: again}
}

func share(name string, amount int64) budget.Share {
	return budget.Share{Namespace: name, Hard: budget.Amounts{pods: amount}}
}

func TestPlan(t *testing.T) {
	ten := []budget.Limit{{Name: "tenant payments", Hard: budget.Amounts{pods: 10}}}
	uncounted := row("b", 3, 0)
	uncounted.Counted = budget.Amounts{pods: 8}
	terminating := row("b", 6, 2)
	terminating.Fixed = true
	ending := row("a", 4, 1)
	ending.Ending = true
	for name, test := range map[string]struct {
		limits   []budget.Limit
		rows     []budget.Row
		refusals map[string]budget.Refusal
		want     []budget.Share
	}{
		"a new namespace gets half of its part of the room": {limits: ten,
			rows: []budget.Row{{Namespace: "a", Under: []int{0}}, row("b", 2, 0)}, want: []budget.Share{share("a", 2)}},
		"a new namespace gets one unit if its part is less": {limits: ten,
			rows: []budget.Row{{Namespace: "a", Under: []int{0}}, row("b", 9, 1)}, want: []budget.Share{share("a", 1)}},
		"a new namespace gets nothing where there is no room, but it has a share": {limits: ten,
			rows: []budget.Row{{Namespace: "a", Under: []int{0}}, row("b", 10, 1)}, want: []budget.Share{share("a", 0)}},
		"a share that is nearly used grows by what is used, at most by a quarter of the room": {limits: ten,
			rows: []budget.Row{row("a", 2, 2)}, want: []budget.Share{share("a", 4)}},
		"a share with room is left alone": {limits: ten, rows: []budget.Row{row("a", 2, 1), row("b", 4, 2)}},
		"a lowered share counts as promised until the API server has counted it": {limits: ten,
			rows: []budget.Row{row("a", 2, 2), uncounted}},
		"a namespace that was refused gets half of what is free": {limits: ten, rows: []budget.Row{row("a", 1, 0)},
			refusals: map[string]budget.Refusal{"a": refused(budget.Amounts{pods: 2}, false)}, want: []budget.Share{share("a", 5)}},
		"a namespace that was refused before gets all that is free": {limits: ten, rows: []budget.Row{row("a", 1, 0)},
			refusals: map[string]budget.Refusal{"a": refused(budget.Amounts{pods: 2}, true)}, want: []budget.Share{share("a", 10)}},
		"two that were refused share what is free": {limits: ten, rows: []budget.Row{row("a", 1, 1), row("b", 1, 1)},
			refusals: map[string]budget.Refusal{
				"a": refused(budget.Amounts{pods: 1}, true), "b": refused(budget.Amounts{pods: 1}, true),
			}, want: []budget.Share{share("a", 5), share("b", 5)}},
		"what a refused namespace lacks is recalled from the largest unused share": {limits: ten,
			rows:     []budget.Row{row("a", 2, 2), row("b", 3, 1), row("c", 5, 1)},
			refusals: map[string]budget.Refusal{"a": refused(budget.Amounts{pods: 3}, false)}, want: []budget.Share{share("c", 2)}},
		"a namespace that was refused again gets its part before it has used up the last one": {limits: ten,
			rows:     []budget.Row{row("a", 3, 2)},
			refusals: map[string]budget.Refusal{"a": refused(budget.Amounts{pods: 1}, true)}, want: []budget.Share{share("a", 10)}},
		"no other share grows while room is kept for a namespace that was refused": {limits: ten,
			rows:     []budget.Row{row("a", 4, 1), row("b", 1, 1)},
			refusals: map[string]budget.Refusal{"a": refused(budget.Amounts{pods: 1}, false)}},
		"a namespace that was refused keeps no more than its fair part": {limits: ten, rows: []budget.Row{row("a", 1, 1), row("b", 8, 0)},
			refusals: map[string]budget.Refusal{
				"a": refused(budget.Amounts{pods: 1}, false), "b": refused(budget.Amounts{pods: 1}, false),
			}, want: []budget.Share{share("a", 2), share("b", 6)}},
		"an old refusal counts no more": {limits: ten, rows: []budget.Row{row("a", 4, 0)},
			refusals: map[string]budget.Refusal{"a": {At: noon.Add(-budget.RefusalHolds), Requested: budget.Amounts{pods: 9}}}},
		"what does not fit into what is free takes nothing from others": {limits: ten, rows: []budget.Row{row("a", 2, 2), row("b", 8, 3)},
			refusals: map[string]budget.Refusal{"a": refused(budget.Amounts{pods: 6}, false)}},
		"nothing is written where the operator may not write, and its promise counts": {limits: ten,
			rows: []budget.Row{row("a", 4, 4), terminating}},
		"a namespace that terminates gets nothing, and keeps what it uses": {limits: ten,
			rows: []budget.Row{ending, row("b", 6, 6)}, refusals: map[string]budget.Refusal{"a": refused(budget.Amounts{pods: 4}, false),
				"b": refused(budget.Amounts{pods: 3}, false)}, want: []budget.Share{share("a", 1)}},
		"a lowered limit takes back what a refused namespace has unused, too": {limits: ten, rows: []budget.Row{row("a", 60, 5)},
			refusals: map[string]budget.Refusal{"a": refused(budget.Amounts{cpu: 1}, true)}, want: []budget.Share{share("a", 10)}},
		"amounts too large to add leave nothing free": {limits: []budget.Limit{{Hard: budget.Amounts{pods: 1 << 62}}},
			rows: []budget.Row{row("a", 1<<62, 1<<62), row("b", 1<<62, 1<<62), row("c", 0, 0), row("d", 1<<62, 1<<62),
				row("e", 1<<62, 1<<62)},
			refusals: map[string]budget.Refusal{"c": refused(budget.Amounts{pods: 1}, false)}},
		"a share as large as numbers go is low only if most of it is used": {limits: []budget.Limit{{Hard: budget.Amounts{pods: 1<<63 - 1}}},
			rows: []budget.Row{row("a", 1<<61, 0), row("b", 1<<60, 0)}},
		"a lowered limit takes back what is unused": {limits: ten, rows: []budget.Row{row("a", 9, 7), row("b", 4, 2)},
			want: []budget.Share{share("a", 7), share("b", 3)}},
		"without a limit no ResourceQuota is needed": {rows: []budget.Row{{Namespace: "a", Spec: budget.Amounts{pods: 1}}},
			want: []budget.Share{{Namespace: "a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, budget.Plan(test.limits, test.rows, test.refusals, noon)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRoomIsKeptBelowLimitsOfThatResourceAlone(t *testing.T) {
	limits := []budget.Limit{{Name: "tenant", Hard: budget.Amounts{cpu: 4000}}, {Name: "team a", Hard: budget.Amounts{pods: 10}},
		{Name: "team b", Hard: budget.Amounts{pods: 10}}}
	below := func(name string, team int, used int64) budget.Row {
		hard := budget.Amounts{pods: 2, cpu: 1000}
		return budget.Row{Namespace: name, Under: []int{0, team}, Spec: hard, Counted: hard, Used: budget.Amounts{pods: used, cpu: 500}}
	}
	refusals := map[string]budget.Refusal{"a": refused(budget.Amounts{pods: 1}, false)}
	got := budget.Plan(limits, []budget.Row{below("a", 1, 0), below("b", 2, 2)}, refusals, noon)
	want := []budget.Share{{Namespace: "b", Hard: budget.Amounts{pods: 4, cpu: 1000}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAShareKeepsToTheSmallestLimitAbove(t *testing.T) {
	limits := []budget.Limit{{Name: "tenant", Hard: budget.Amounts{pods: 10, cpu: 4000}}, {Name: "team", Hard: budget.Amounts{pods: 4}}}
	namespace := budget.Row{Namespace: "a", Under: []int{0, 1}, Spec: budget.Amounts{pods: 1, cpu: 500},
		Counted: budget.Amounts{pods: 1, cpu: 500}, Used: budget.Amounts{pods: 1, cpu: 400}}
	refusals := map[string]budget.Refusal{"a": refused(budget.Amounts{pods: 1, cpu: 1000}, true)}
	got := budget.Plan(limits, []budget.Row{namespace}, refusals, noon)
	want := []budget.Share{{Namespace: "a", Hard: budget.Amounts{pods: 4, cpu: 4000}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnExtendedResourceThatIsCalledMemoryIsNoBytes(t *testing.T) {
	t.Run("QUOTA-61 an extended resource that is called memory is a count: each of four namespaces begins with a "+
		"part of it", func(t *testing.T) {
		const key = "requests.volcano.sh/vgpu-memory"
		var rows []budget.Row
		for n := range 4 {
			rows = append(rows, budget.Row{Namespace: fmt.Sprint("ns-", n), Under: []int{0}})
		}
		shares := budget.Plan([]budget.Limit{{Hard: budget.Amounts{key: 81920}}}, rows, nil, noon)
		if first := shares[0].Hard.List()[key]; first.String() != "10240" {
			t.Errorf("the first namespace begins with %s of 81920", first.String())
		}
	})
}

func TestParseRefusal(t *testing.T) {
	hard := budget.Amounts{pods: 10, cpu: 4000, corev1.ResourceRequestsMemory: 8 << 30}
	units := budget.Amounts{pods: 1, cpu: 100, corev1.ResourceRequestsMemory: 128 << 20}
	for message, want := range map[string]budget.Amounts{
		`pods "x" is forbidden: exceeded quota: hrq.tenancy.warren.dev, requested: pods=1,requests.cpu=1500m, used: pods=2, limited: pods=2`: {
			pods: 1, cpu: 1500},
		`exceeded quota: hrq.tenancy.warren.dev, requested: pods=-1, used: pods=2`:            units,
		`exceeded quota: hrq.tenancy.warren.dev, spoken of otherwise`:                         units,
		`exceeded quota: hrq.tenancy.warren.dev, requested: pods=1e-2000000000, used: pods=2`: units,
		`exceeded quota: hrq.tenancy.warren.dev, requested: pods=1e99, used: pods=2`:          {pods: math.MaxInt64 / 1024},
		`exceeded quota: mine, requested: pods=1, used: pods=2, limited: pods=2`:              nil,
		`pods "x" is forbidden: violates PodSecurity`:                                         nil,
	} {
		if diff := cmp.Diff(want, budget.ParseRefusal(message, hard)); diff != "" {
			t.Errorf("%s: %s", message, diff)
		}
	}
}

func TestARefusalIsReadAsItWasWritten(t *testing.T) {
	quantities := func(pods, storage string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceRequestsStorage: resource.MustParse(storage), corev1.ResourcePods: resource.MustParse(pods)}
	}
	requested := quantities("1", "500Gi")
	message := budget.FormatRefusal(requested, quantities("12", "1Ti"), quantities("12", "1025Gi"))
	want := "exceeded quota: hrq.tenancy.warren.dev, requested: pods=1,requests.storage=500Gi, used: pods=12,requests.storage=1Ti, " +
		"limited: pods=12,requests.storage=1025Gi"
	if message != want {
		t.Error(message)
	}
	if diff := cmp.Diff(budget.AmountsOf(requested), budget.ParseRefusal(message, budget.Amounts{pods: 12})); diff != "" {
		t.Error(diff)
	}
}

func TestAQuantityThatIsTooLargeIsTheLargestNumber(t *testing.T) {
	const numbers, whole = math.MaxInt64, math.MaxInt64 / 1024 // the API server refuses some shares of more objects
	for key, test := range map[corev1.ResourceName]struct {
		quantity string
		want     int64
	}{
		cpu: {"9E", numbers}, corev1.ResourceLimitsCPU: {"8Ei", numbers}, corev1.ResourceRequestsMemory: {"1e30", numbers},
		pods: {"10P", whole}, "count/jobs.batch": {"8Ei", whole}, corev1.ResourceServices: {"9P", 9e15},
	} {
		if got := budget.AmountsOf(corev1.ResourceList{key: resource.MustParse(test.quantity)})[key]; got != test.want {
			t.Errorf("%s of %s is %d, want %d", test.quantity, key, got, test.want)
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	limits := []budget.Limit{{Hard: budget.Amounts{pods: 40_000, cpu: 4_000_000}}}
	rows := make([]budget.Row, 4000)
	for i := range rows {
		rows[i] = budget.Row{Namespace: fmt.Sprint("ns-", i), Under: []int{0}, Spec: budget.Amounts{pods: 10, cpu: 1000},
			Counted: budget.Amounts{pods: 10, cpu: 1000}, Used: budget.Amounts{pods: 4, cpu: 400}}
	}
	refusals := map[string]budget.Refusal{"ns-7": refused(budget.Amounts{pods: 20, cpu: 2000}, false)}
	for b.Loop() {
		if len(budget.Plan(limits, rows, refusals, noon)) == 0 {
			b.Fatal("nothing is recalled")
		}
	}
}

func TestAnOpenWriteIsRepeatedWithWhatThereIsRoomFor(t *testing.T) {
	for name, tt := range map[string]struct{ limit, want int64 }{
		"QUOTA-74 a write without an answer is repeated, as long as there is room for it":                   {5, 1},
		"QUOTA-74 a write without an answer whose room is used by now is decided by one that asks for less": {4, 0},
	} {
		t.Run(name, func(t *testing.T) {
			limits := []budget.Limit{{Name: "tenant", Hard: budget.Amounts{pods: tt.limit}}}
			rows := []budget.Row{
				{Namespace: "full", Under: []int{0}, Spec: budget.Amounts{pods: 4}, Counted: budget.Amounts{pods: 4}, Used: budget.Amounts{pods: 4}},
				{Namespace: "open", Under: []int{0}, Spec: budget.Amounts{pods: 1}, Open: true},
			}
			shares := budget.Plan(limits, rows, nil, time.Unix(0, 0))
			if len(shares) != 1 || shares[0].Namespace != "open" || shares[0].Hard[pods] != tt.want {
				t.Errorf("got %v, want a share of %d for the one whose write is open", shares, tt.want)
			}
		})
	}
}
