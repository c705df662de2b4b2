package guard

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
)

const refusal = `{"kind":"Status","message":"secrets \"s\" is forbidden: ValidatingAdmissionPolicy 'warren-operator-cage-objects' with ` +
	`binding 'warren-operator-cage-objects' denied request: whatever the operator writes carries its mark","code":403}`

// broken is a response body whose last read returns an error.
type broken struct{ io.Reader }

func (b broken) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (broken) Close() error { return nil }

func TestRefusals(t *testing.T) {
	long := strings.Repeat("x", 3*mostRead)
	for name, c := range map[string]struct {
		status  int
		body    io.ReadCloser
		text    string
		err     error
		counted float64
	}{
		"by the cage": {403, io.NopCloser(strings.NewReader(refusal)), refusal, nil, 1},
		"by the cage, in protobuf": {403, io.NopCloser(strings.NewReader("k8s\x00\x12" + refusal[30:])), "k8s\x00\x12" + refusal[30:], nil,
			1},
		"by RBAC": {403, io.NopCloser(strings.NewReader(`{"message":"forbidden: User \"x\" cannot get"}`)),
			`{"message":"forbidden: User \"x\" cannot get"}`, nil, 0},
		"by another policy": {403, io.NopCloser(strings.NewReader(strings.ReplaceAll(refusal, "operator-cage-objects", "copy"))),
			strings.ReplaceAll(refusal, "operator-cage-objects", "copy"), nil, 0},
		"no refusal, whatever it says": {200, io.NopCloser(strings.NewReader(refusal)), refusal, nil, 0},
		"a long answer":                {403, io.NopCloser(strings.NewReader(long)), long, nil, 0},
		"an answer that breaks off":    {403, broken{strings.NewReader(refusal)}, refusal, io.ErrUnexpectedEOF, 1},
	} {
		t.Run(name, func(t *testing.T) {
			refusals.Reset()
			cfg := &rest.Config{}
			NewRefusals(cfg)
			through := cfg.WrapTransport(roundTripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: c.status, Body: c.body}, nil
			}))
			answer, err := through.RoundTrip(&http.Request{URL: &url.URL{}})
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(answer.Body)
			if !errors.Is(err, c.err) || string(text) != c.text {
				t.Errorf("the answer became %q, %v", text, err)
			}
			if err := answer.Body.Close(); err != nil {
				t.Error(err)
			}
			counter := &dto.Metric{}
			if err := refusals.WithLabelValues("operator-cage-objects").Write(counter); err != nil {
				t.Fatal(err)
			}
			if got := counter.GetCounter().GetValue(); got != c.counted {
				t.Errorf("counted %v, want %v", got, c.counted)
			}
		})
	}
}

// A refusal is reported once, and only if it lasts.
func TestLastingRefusalsAreToldOnce(t *testing.T) {
	t.Run("SEC-X39 the cage refuses a request, and 5 s or more later the same request again: one Event CageRefused; a single refusal, or "+
		"a refused Event, causes none", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			events := record.NewFakeRecorder(10)
			cfg := &rest.Config{}
			r := NewRefusals(cfg)
			says := refusal
			through := cfg.WrapTransport(roundTripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 403, Body: io.NopCloser(strings.NewReader(says))}, nil
			}))
			send := func(path string) {
				answer, err := through.RoundTrip(&http.Request{Method: http.MethodPost, URL: &url.URL{Path: path}})
				if err != nil {
					t.Fatal(err)
				}
				_ = answer.Body.Close()
			}
			send("/a") // no Events can be written yet
			r.SetRecorder(events, Deployment("warren-system"))
			send("/a")
			time.Sleep(lasting)
			send("/b") // the time of this refusal begins now
			if len(events.Events) != 0 {
				t.Fatalf("a refusal is told that doesn't last: %q", <-events.Events)
			}
			send("/a")
			time.Sleep(lasting)
			send("/a")
			send("/b")
			if len(events.Events) != 1 {
				t.Fatalf("%d Events, want 1", len(events.Events))
			}
			want := "Warning CageRefused ValidatingAdmissionPolicy 'warren-operator-cage-objects' with binding 'warren-operator-cage-objects' " +
				"denied request: whatever the operator writes carries its mark"
			if got := <-events.Events; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			says = strings.ReplaceAll(refusal, "operator-cage-objects", eventsPolicy)
			send("/events")
			time.Sleep(lasting)
			send("/events")
			if len(events.Events) != 0 {
				t.Errorf("a refused Event causes an Event: %q", <-events.Events)
			}
		})
	})
}

func TestRefusalsPassErrorsOn(t *testing.T) {
	cfg := &rest.Config{}
	NewRefusals(cfg)
	lost := errors.New("connection lost")
	answer, err := cfg.WrapTransport(roundTripper(func(*http.Request) (*http.Response, error) { return nil, lost })).RoundTrip(&http.Request{})
	if answer != nil {
		_ = answer.Body.Close()
	}
	if !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
}
