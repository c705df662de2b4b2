package sudo

import (
	"net/http"
	"testing"
	"time"
)

func TestClockIsThatOfTheAPIServer(t *testing.T) {
	const hour = time.Hour
	for name, tc := range map[string]struct {
		dates []time.Duration // ahead of this process
		want  time.Duration
	}{
		"no answer":                      {nil, 0},
		"an hour ahead":                  {[]time.Duration{hour}, hour},
		"an hour behind":                 {[]time.Duration{-hour}, -hour},
		"an older answer comes later":    {[]time.Duration{hour, hour - 2*time.Second}, hour},
		"the API server's clock was set": {[]time.Duration{hour, -hour}, -hour},
		"it was set forward":             {[]time.Duration{-hour, hour}, hour},
	} {
		t.Run("REQ-S11 the clock is that of the API server, whatever the operator's says: "+name, func(t *testing.T) {
			c, begun := &clock{}, time.Now()
			for _, ahead := range tc.dates {
				c.takeDate(begun.Add(ahead).UTC().Format(http.TimeFormat))
			}
			// Date has whole seconds, rounded down.
			if ahead := c.Now().Sub(begun) - tc.want; ahead < -time.Second || ahead > time.Second {
				t.Errorf("the clock is %s ahead, want %s", c.Now().Sub(begun), tc.want)
			}
		})
	}
}

func TestClockIgnoresWhatIsNoDate(t *testing.T) {
	c := &clock{}
	if c.takeDate("yesterday"); !c.at.IsZero() {
		t.Error("the clock was set")
	}
}
