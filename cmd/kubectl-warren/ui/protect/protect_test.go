package protect_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/ui/protect"
)

// server is a guarded server whose only page says "inside". reported has the sentences that the guard wrote to the
// terminal.
type server struct {
	*httptest.Server
	guard    *protect.Guard
	reported []string
	clock    time.Time
	inside   int
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	s.guard = protect.New(func(sentence string) { s.reported = append(s.reported, sentence) }, func() time.Time { return s.clock })
	s.Server = httptest.NewServer(s.guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.inside++
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
		_, _ = io.WriteString(w, "inside "+r.URL.Path)
	})))
	t.Cleanup(s.Close)
	return s
}

// reply is an answer that was read to its end.
type reply struct {
	Status     string
	StatusCode int
	Header     http.Header
	Text       string
	cookies    []*http.Cookie
}

func (r reply) Cookies() []*http.Cookie { return r.cookies }

// do sends a request, which change may alter before, and returns the answer.
func (s *server) do(t *testing.T, method, path string, change func(*http.Request)) reply {
	t.Helper()
	r, err := http.NewRequest(method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return reply{Status: answer.Status, StatusCode: answer.StatusCode, Header: answer.Header, Text: string(body), cookies: answer.Cookies()}
}

// logIn returns the cookie of a new session.
func (s *server) logIn(t *testing.T) *http.Cookie {
	t.Helper()
	answer := s.do(t, http.MethodGet, s.guard.NewLogin(), nil)
	if answer.StatusCode != http.StatusOK || len(answer.Cookies()) != 1 {
		t.Fatalf("logging in: %s with %d cookies", answer.Status, len(answer.Cookies()))
	}
	return answer.Cookies()[0]
}

func TestSession(t *testing.T) {
	s := newServer(t)
	cookie := s.logIn(t)
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != s.guard.Path() || len(cookie.Value) < 43 {
		t.Errorf("the cookie is %+v", cookie)
	}
	answer := s.do(t, http.MethodGet, s.guard.Path()+"namespaces/pay-web", func(r *http.Request) { r.AddCookie(cookie) })
	if answer.Text != "inside /namespaces/pay-web" {
		t.Errorf("with a session: %s %q", answer.Status, answer.Text)
	}
}

// foreign are requests that no page of the server sends.
var foreign = map[string]func(*http.Request){
	"WEB-W1 Host evil.test, a rebound name, gets 403":              func(r *http.Request) { r.Host = "evil.test" },
	"WEB-W1 a rebound name with a port gets 403":                   func(r *http.Request) { r.Host = "evil.test:41379" },
	"WEB-W1 Host 127.evil.test gets 403":                           func(r *http.Request) { r.Host = "127.evil.test" },
	"WEB-W1 Host 127.0.0.1.evil.test gets 403":                     func(r *http.Request) { r.Host = "127.0.0.1.evil.test" },
	"WEB-W1 Host evil.localhost gets 403":                          func(r *http.Request) { r.Host = "evil.localhost" },
	"WEB-W1 the address in another form gets 403":                  func(r *http.Request) { r.Host = "0x7f.1" },
	"WEB-W1 another loopback address gets 403":                     func(r *http.Request) { r.Host = "127.0.0.2" },
	"WEB-W1 Host localhost, which has several addresses, gets 403": func(r *http.Request) { r.Host = "localhost:41379" },
	"WEB-W1 an IPv6 address gets 403":                              func(r *http.Request) { r.Host = "[::1]:80" },
	"WEB-W2 Origin of another port gets 403":                       func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") },
	"WEB-W2 Origin null gets 403":                                  func(r *http.Request) { r.Header.Set("Origin", "null") },
	"WEB-W2 an empty Origin gets 403":                              func(r *http.Request) { r.Header["Origin"] = []string{""} },
	"WEB-W2 two " +
		"Origins " +
		"get 403": func(r *http.Request) { r.Header["Origin"] = []string{"http://" + r.URL.Host, "http://evil.test"} },
	"WEB-W2 Origin by https gets 403":           func(r *http.Request) { r.Header.Set("Origin", "https://"+r.URL.Host) },
	"WEB-W2 Sec-Fetch-Site same-site gets 403":  func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
	"WEB-W2 Sec-Fetch-Site cross-site gets 403": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
	"WEB-W2 a page that nobody has opened yet (Sec-Purpose) gets 403": func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "none")
		r.Header.Set("Sec-Purpose", "prefetch;prerender")
	},
	"WEB-W2 an unknown Sec-Fetch-Site gets 403": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "SAME-ORIGIN") },
}

func TestForeignRequests(t *testing.T) {
	s := newServer(t)
	cookie := s.logIn(t)
	for name, change := range foreign {
		t.Run(name, func(t *testing.T) {
			for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodHead, http.MethodOptions} {
				answer := s.do(t, method, s.guard.Path(), func(r *http.Request) { r.AddCookie(cookie); change(r) })
				if answer.StatusCode != http.StatusForbidden {
					t.Errorf("%s: %s", method, answer.Status)
				}
			}
		})
	}
	if s.inside != 0 {
		t.Errorf("%d of them reached a page", s.inside)
	}
	t.Run("WEB-W1 another port of the address, for a tunnel, is allowed", func(t *testing.T) {
		answer := s.do(t, http.MethodGet, s.guard.Path(), func(r *http.Request) {
			r.AddCookie(cookie)
			r.Host = "127.0.0.1:8080"
			r.Header.Set("Origin", "http://127.0.0.1:8080")
			r.Header.Set("Sec-Fetch-Site", "same-origin")
		})
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s", answer.Status)
		}
	})
}

func TestWithoutHost(t *testing.T) {
	s := newServer(t)
	cookie := s.logIn(t)
	for protocol, want := range map[string]int{"HTTP/1.0": http.StatusForbidden, "HTTP/1.1": http.StatusBadRequest} {
		t.Run("WEB-W1 a request without Host gets 403 by HTTP 1.0 and, by Go's server, 400 by HTTP 1.1: "+protocol, func(t *testing.T) {
			connection, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = connection.Close() }()
			_, _ = fmt.Fprintf(connection, "GET %s %s\r\nCookie: %s=%s\r\n\r\n", s.guard.Path(), protocol, cookie.Name, cookie.Value)
			answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("%s", answer.Status)
			}
		})
	}
}

func TestTokens(t *testing.T) {
	t.Run("WEB-W3 no cookie, one of another run, or a made-up one gets 401 with the hint of 2.4", func(t *testing.T) {
		s, other := newServer(t), newServer(t)
		for _, cookie := range []*http.Cookie{nil, other.logIn(t), {Name: "warren-ui", Value: "guess"}, {Name: "warren-ui", Value: ""}} {
			answer := s.do(t, http.MethodGet, s.guard.Path(), func(r *http.Request) {
				if cookie != nil {
					r.AddCookie(cookie)
				}
			})
			expectHint(t, answer)
		}
	})
	t.Run("WEB-W3 a token that was used already gets 401 with the hint; the first time with a Warning in the terminal", func(t *testing.T) {
		s := newServer(t)
		login, used := s.guard.NewLogin(), make(chan struct{})
		s.guard.OnLogin(login, func() { close(used) })
		if answer := s.do(t, http.MethodGet, login, nil); answer.StatusCode != http.StatusOK {
			t.Fatalf("first: %s", answer.Status)
		}
		<-used
		if len(s.reported) != 0 {
			t.Errorf("the first use was reported: %q", s.reported)
		}
		answer := s.do(t, http.MethodGet, login, nil)
		expectHint(t, answer)
		if len(answer.Cookies()) != 0 || len(s.reported) != 1 {
			t.Errorf("second: %d cookies, %q", len(answer.Cookies()), s.reported)
		}
		expectHint(t, s.do(t, http.MethodGet, login, nil))
		if len(s.reported) != 1 {
			t.Errorf("third: %q", s.reported)
		}
	})
	t.Run("WEB-W3 a token after 10 min gets 401 with the hint", func(t *testing.T) {
		s := newServer(t)
		login := s.guard.NewLogin()
		s.clock = s.clock.Add(10*time.Minute + time.Second)
		expectHint(t, s.do(t, http.MethodGet, login, nil))
	})
	t.Run("WEB-W3 a token of another run, or an empty one, gets 401 with the hint, also with a valid cookie", func(t *testing.T) {
		s, other := newServer(t), newServer(t)
		_, token, _ := strings.Cut(other.guard.NewLogin(), "?")
		cookie := s.logIn(t)
		for _, query := range []string{token, "token=", "token"} {
			expectHint(t, s.do(t, http.MethodGet, s.guard.Path()+"?"+query, func(r *http.Request) { r.AddCookie(cookie) }))
		}
	})
	t.Run("WEB-W3 a token by POST is not used up", func(t *testing.T) {
		s := newServer(t)
		login := s.guard.NewLogin()
		if answer := s.do(t, http.MethodPost, login, nil); answer.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("POST: %s", answer.Status)
		}
		if answer := s.do(t, http.MethodGet, login, nil); answer.StatusCode != http.StatusOK {
			t.Errorf("GET: %s", answer.Status)
		}
	})
	t.Run("WEB-W3 a wrong RUN gets 404, also with a valid cookie or token", func(t *testing.T) {
		s, other := newServer(t), newServer(t)
		cookie := s.logIn(t)
		_, token, _ := strings.Cut(s.guard.NewLogin(), "?")
		for _, path := range []string{"/", other.guard.Path(), s.guard.Path()[:8], "/favicon.ico", other.guard.Path() + "?" + token, strings.TrimSuffix(s.guard.Path(), "/")} {
			answer := s.do(t, http.MethodGet, path, func(r *http.Request) { r.AddCookie(cookie) })
			if answer.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %s", path, answer.Status)
			}
		}
	})
}

func expectHint(t *testing.T, answer reply) {
	t.Helper()
	if answer.StatusCode != http.StatusUnauthorized || !strings.Contains(answer.Text, "Press Enter where kubectl warren ui runs") {
		t.Errorf("%s %s", answer.Status, answer.Text)
	}
}

// wantedReferrer is no-referrer only for an address with a token, so that no Referer header has the token. Elsewhere
// no-referrer would make the browser send "Origin: null" with a form, and the form would be refused.
func wantedReferrer(path string) string {
	if strings.Contains(path, "token=") {
		return "no-referrer"
	}
	return "same-origin"
}

// wanted are the headers of every answer.
var wanted = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; " +
		"style-src 'self' 'sha256-WBTn7WwiwswjZ1Cb+/jC/6f1LoZfI1YZBytJbjfQjjU='; img-src 'self'; connect-src 'self'; form-action 'self'; " +
		"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
	"X-Content-Type-Options":       "nosniff",
	"Cache-Control":                "no-store",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
}

func TestHeaders(t *testing.T) {
	s := newServer(t)
	cookie := s.logIn(t)
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} {
		for _, path := range []string{"/", "/x", s.guard.Path(), s.guard.Path() + "no/such/page", s.guard.NewLogin()} {
			for _, withCookie := range []bool{true, false} {
				t.Run(fmt.Sprintf("WEB-W4 each answer has the headers of 2.4, with a "+
					"session and without, and none holds a token: %s %s cookie=%v", method, path, withCookie), func(t *testing.T) {
					answer := s.do(t, method, path, func(r *http.Request) {
						if withCookie {
							r.AddCookie(cookie)
						}
					})
					for name, want := range wanted {
						if got := answer.Header.Values(name); len(got) != 1 || got[0] != want {
							t.Errorf("%s: %q", name, got)
						}
					}
					if got := answer.Header.Values("Referrer-Policy"); len(got) != 1 || got[0] != wantedReferrer(path) {
						t.Errorf("Referrer-Policy: %q", got)
					}
					if strings.Contains(answer.Text, "token=") {
						t.Errorf("the page holds a token: %s", answer.Text)
					}
				})
			}
		}
	}
}

func TestLimits(t *testing.T) {
	s := newServer(t)
	cookie := s.logIn(t)
	for name, length := range map[string]int64{"WEB-W9 a body of 65 KiB gets 413": 65 << 10, "WEB-W9 a body of 65 KiB without a length gets " +
		"413": -1} {
		t.Run(name, func(t *testing.T) {
			answer := s.do(t, http.MethodPost, s.guard.Path(), func(r *http.Request) {
				r.AddCookie(cookie)
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("x", 65<<10))), length
			})
			if answer.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("%s", answer.Status)
			}
		})
	}
}

func TestStreams(t *testing.T) {
	t.Run("WEB-W9 a 17th stream gets 503, and the others continue", func(t *testing.T) {
		open, release := make(chan struct{}), make(chan struct{})
		s := httptest.NewServer(protect.LimitStreams(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			open <- struct{}{}
			<-release
		})))
		defer s.Close()
		ended := make(chan int, protect.MaxStreams)
		for range protect.MaxStreams {
			go func() {
				answer, err := http.Get(s.URL)
				if err != nil {
					ended <- 0
					return
				}
				_ = answer.Body.Close()
				ended <- answer.StatusCode
			}()
			<-open
		}
		answer, err := http.Get(s.URL)
		if err != nil || answer.StatusCode != http.StatusServiceUnavailable {
			t.Fatalf("the 17th: %v %v", answer, err)
		}
		_ = answer.Body.Close()
		close(release)
		for range protect.MaxStreams {
			if status := <-ended; status != http.StatusOK {
				t.Errorf("one of the others ended with %d", status)
			}
		}
	})
}
