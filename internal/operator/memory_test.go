package operator

import "testing"

func TestPercent(t *testing.T) {
	cases := map[string]struct {
		reason        string
		live, scanned uint64
		want          int
	}{
		"Nothing":     {"no collection has ended yet", 0, 0, maxPercent},
		"Little":      {"64 MiB would be more than 150 %", 40 << 20, 0, maxPercent},
		"Some":        {"64 MiB beside it", 50 << 20, 0, 128},
		"Much":        {"as much as Go itself would allow", 300 << 20, 0, minPercent},
		"Many stacks": {"64 MiB beside both", 32 << 20, 32 << 20, 100},
		"Much of it":  {"as much as is live", 300 << 20, 100 << 20, 75},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := garbagePercent(tc.live, tc.scanned); got != tc.want {
				t.Errorf("%s: percent(%d, %d) is %d, want %d", tc.reason, tc.live, tc.scanned, got, tc.want)
			}
		})
	}
}
