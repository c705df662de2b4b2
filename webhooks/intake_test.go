package webhooks

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/sync/semaphore"
)

// sent sends a request with this body through i to a handler, which reads the body and then calls handle. It returns how much the handler
// has read.
func sent(i intake, body string, handle func()) (read int, err error) {
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	i.limitBodySize(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var text []byte
		text, err = io.ReadAll(r.Body)
		read = len(text)
		handle()
	})).ServeHTTP(httptest.NewRecorder(), request)
	return read, err
}

func TestIntake(t *testing.T) {
	i := intake{semaphore.NewWeighted(4 << 20)}
	for name, c := range map[string]struct{ body, says string }{
		"an object":     {`{"a":1}`, ""},
		"after spaces":  {"\r\n\t \u00a0" + `{"a":1}`, ""},
		"nothing":       {"", ""},
		"aliases":       {"a: &a xxxxx\nb: [*a,*a,*a]\n", errNotJSON.Error()},
		"a list":        {`[{"a":1}]`, errNotJSON.Error()},
		"a string":      {`"{}"`, errNotJSON.Error()},
		"a byte order":  {"\ufeff{}", errNotJSON.Error()},
		"a document":    {"---\n{a: &a x, b: [*a]}", errNotJSON.Error()},
		"as much":       {"{" + strings.Repeat(" ", maxBody-1), ""},
		"a byte more":   {"{" + strings.Repeat(" ", maxBody), errTooLarge.Error()},
		"spaces before": {strings.Repeat(" ", 100_000) + "a: 1", errNotJSON.Error()},
	} {
		t.Run("SEC-W36 a body that is no JSON object is refused before it is decoded; one of more than 3 MiB is "+
			"refused, with what to do: "+name, func(t *testing.T) {
			read, err := sent(i, c.body, func() {})
			switch {
			case c.says == "" && (err != nil || read != len(c.body)):
				t.Errorf("read %d bytes of %d, %v", read, len(c.body), err)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("got %v, wanted %s", err, c.says)
			}
		})
	}
}

func TestIntakeOfMany(t *testing.T) {
	t.Run("SEC-W36 a body that brings all bodies together above the bound is refused", func(t *testing.T) {
		i, most := intake{semaphore.NewWeighted(1000)}, "{"+strings.Repeat(" ", 899)
		for range 3 { // a refused body also releases its part of the bound
			if _, err := sent(i, most, func() {
				if _, err := sent(i, "{"+strings.Repeat(" ", 199), func() {}); err == nil || err.Error() != errBodiesFull.Error() {
					t.Errorf("a body beyond the bound: %v", err)
				}
				if _, err := sent(i, "{}", func() {}); err != nil {
					t.Errorf("a small body: %v", err)
				}
			}); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestIntakeOfEntries(t *testing.T) {
	t.Run("SEC-W36 a body of 600 kB whose list has so many entries that decoding takes more than the bound is refused", func(t *testing.T) {
		list := func(entries int) string { return `{"a":[` + strings.Repeat("0,", entries) + `0]}` }
		if _, err := sent(newLimitedIntake(), list(300_000), func() {}); err == nil || err.Error() != errBodiesFull.Error() {
			t.Errorf("300,000 entries: %v", err)
		}
		if _, err := sent(newLimitedIntake(), list(200_000), func() {}); err != nil {
			t.Errorf("200,000 entries: %v", err)
		}
	})
}

func TestIntakeOutlastsTheServer(t *testing.T) {
	t.Run("SUB-F14 a review that is being answered when the process is to stop is answered", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}")).WithContext(ctx)
		newLimitedIntake().limitBodySize(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			stop()
			if _, bounded := r.Context().Deadline(); r.Context().Err() != nil || !bounded {
				t.Errorf("the review's context: %v, bounded: %t; want that it goes on, for a bounded time", r.Context().Err(), bounded)
			}
		})).ServeHTTP(httptest.NewRecorder(), request)
	})
}
