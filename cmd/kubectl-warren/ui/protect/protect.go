// Package protect decides which HTTP requests the page's server answers: those of a browser on this machine that holds
// the secret path and a session. Other users of the machine reach the port, and foreign pages can have the user's
// browser send requests, so neither the address nor the cookie is enough by itself.
package protect

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"
	"time"
)

// Sizes of secrets, in bytes, and how long a token works.
const (
	runSize       = 16
	tokenSize     = 32
	sessionSize   = 32
	tokenLifetime = 10 * time.Minute
)

// Guard holds the secrets of one run of the server.
type Guard struct {
	run      string
	sessions *sessions
	// report writes to the terminal that an address was opened twice.
	report func(sentence string)
	now    func() time.Time
}

// New makes a guard with fresh secrets. report tells the person at the terminal of a token's second use; now is the
// clock.
func New(report func(sentence string), now func() time.Time) *Guard {
	return &Guard{run: newSecret(runSize), sessions: newSessions(), report: report, now: now}
}

// newSecret returns size random bytes in base64, for use in an address or a cookie.
func newSecret(size int) string {
	bytes := make([]byte, size)
	_, _ = rand.Read(bytes) // crypto/rand ends the program where it can't read
	return base64.RawURLEncoding.EncodeToString(bytes)
}

// Path returns the beginning of every path of this run, /RUN/, where RUN is a secret of the run.
func (g *Guard) Path() string { return "/" + g.run + "/" }

// NewLogin returns a path that works once, within ten minutes.
func (g *Guard) NewLogin() string {
	return g.Path() + "?" + tokenParameter + "=" + g.sessions.issueToken(g.now().Add(tokenLifetime))
}

// OnLogin calls done, once, when the path login is opened.
func (g *Guard) OnLogin(login string, done func()) {
	_, token, _ := strings.Cut(login, "?"+tokenParameter+"=")
	g.sessions.onUse(token, done)
}

// tokenParameter is the parameter of an address that holds a token.
const tokenParameter = "token"

// Handler returns a handler that passes a request to next under three conditions. It comes from a page of this server
// or from the address line, its path begins with /RUN/, and it has a session. next gets the path after RUN.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		holdsToken := r.URL.Query().Has(tokenParameter)
		setHeaders(w.Header(), holdsToken)
		rest, underRun := g.cutRun(r.URL.Path)
		isLogin := underRun && rest == "/" && holdsToken
		switch {
		case !isOwnHost(r), !isOwnOrigin(r), isPrefetch(r), !isLogin && !isOwnSite(r):
			writeRefusal(w, http.StatusForbidden,
				"This request does not come from a page of kubectl warren ui: open the address as it was printed.")
		case !underRun:
			writeRefusal(w, http.StatusNotFound, "There is no such page.")
		case isLogin:
			g.logIn(w, r)
		case !g.hasSession(r):
			refuseSession(w, "This browser has no session.")
		default:
			g.serveLimited(w, r, rest, next)
		}
	})
}

// cutRun returns the path after the secret RUN. ok reports whether the secret is right; the comparison takes constant
// time.
func (g *Guard) cutRun(path string) (rest string, ok bool) {
	run, rest, found := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return "/" + rest, found && subtle.ConstantTimeCompare([]byte(run), []byte(g.run)) == 1
}

// serveLimited passes a request with path rest to next, if its body is small enough.
func (g *Guard) serveLimited(w http.ResponseWriter, r *http.Request, rest string, next http.Handler) {
	if r.ContentLength > MaxBody {
		writeRefusal(w, http.StatusRequestEntityTooLarge, "The request is larger than 64 KiB.")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
	inner := r.Clone(WithSession(r.Context(), g.sessionOf(r)))
	inner.URL.Path, inner.URL.RawPath = rest, ""
	next.ServeHTTP(w, inner)
}
