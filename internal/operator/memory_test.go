package operator

import "testing"

func TestPercent(t *testing.T) {
	cases := map[string]struct {
		reason string
		live   uint64
		want   int
	}{
		"Nothing": {"no collection has ended yet", 0, maxPercent},
		"Little":  {"64 MiB would be more than 400 %", 10 << 20, maxPercent},
		"Some":    {"64 MiB beside it", 32 << 20, 200},
		"Much":    {"as much as Go itself would allow", 300 << 20, minPercent},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := garbagePercent(tc.live); got != tc.want {
				t.Errorf("%s: percent(%d) is %d, want %d", tc.reason, tc.live, got, tc.want)
			}
		})
	}
}
