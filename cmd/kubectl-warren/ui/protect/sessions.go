package protect

import (
	"context"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"
)

// cookieName is the name of the session's cookie. Browsers send a cookie to every port of its address. The cookie's
// path is the secret Guard.Path, so that other servers at the same address don't get it.
const cookieName = "warren-ui"

// digest is what the server keeps of a secret: the time of a lookup does not depend on how much of a guessed secret is
// right.
type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

// token is a permission to begin one session.
type token struct {
	expires time.Time
	used    bool
	// again reports whether a second use was reported.
	again bool
	onUse func()
}

// sessions are the tokens and sessions of one run. mu guards tokens and open.
type sessions struct {
	mu     sync.Mutex
	tokens map[digest]*token
	open   map[digest]bool
}

func newSessions() *sessions {
	return &sessions{tokens: map[digest]*token{}, open: map[digest]bool{}}
}

// issueToken makes a token that works until expires.
func (s *sessions) issueToken(expires time.Time) string {
	secret := newSecret(tokenSize)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[digestOf(secret)] = &token{expires: expires}
	return secret
}

func (s *sessions) onUse(secret string, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tokens[digestOf(secret)]; t != nil {
		t.onUse = done
	}
}

// redeemToken begins a session for a token. again is true at the second use of the token; later uses are refused
// silently.
func (s *sessions) redeemToken(secret string, now time.Time) (session string, ok, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tokens[digestOf(secret)]
	switch {
	case t == nil, !t.used && now.After(t.expires):
		return "", false, false
	case t.used:
		again, t.again = !t.again, true
		return "", false, again
	}
	t.used = true
	if t.onUse != nil {
		go t.onUse()
	}
	session = newSecret(sessionSize)
	s.open[digestOf(session)] = true
	return session, true, false
}

func (s *sessions) isOpen(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[digestOf(session)]
}

// logIn begins a session. It answers with a page that loads the first page by itself, and not with a redirect: after a
// redirect, a browser that comes from a file or another program would not send a Strict cookie.
func (g *Guard) logIn(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		writeRefusal(w, http.StatusMethodNotAllowed, "The address of a session is opened by GET.")
		return
	}
	session, ok, again := g.sessions.redeemToken(r.URL.Query().Get(tokenParameter), g.now())
	if again {
		g.report("an address was opened a second time and refused: if that was not you, somebody else has read it; end this program and start it anew")
	}
	if !ok {
		refuseSession(w, "This address was used before, has expired, or is not complete.")
		return
	}
	// The cookie has no Secure: on loopback there is no TLS, and not every browser accepts a Secure cookie from there.
	cookie := &http.Cookie{Name: cookieName, Value: session, Path: g.Path(), HttpOnly: true, SameSite: http.SameSiteStrictMode} //nolint:gosec // as said above
	http.SetCookie(w, cookie)
	w.Header().Set("Refresh", "0;url="+g.Path())
	icon := "<link rel=\"icon\" href=\"" + g.Path() + "assets/icon.svg\">" // else the browser asks for /favicon.ico
	writePage(w, http.StatusOK, "Warren", icon, "<p><a href=\""+g.Path()+"\">Go on</a></p>")
}

// sessionOf returns the open session that a cookie of the request names; "" if none does.
func (g *Guard) sessionOf(r *http.Request) string {
	for _, cookie := range r.CookiesNamed(cookieName) {
		if g.sessions.isOpen(cookie.Value) {
			return cookie.Value
		}
	}
	return ""
}

func (g *Guard) hasSession(r *http.Request) bool { return g.sessionOf(r) != "" }

type sessionKey struct{}

// WithSession returns a context of a request of that session.
func WithSession(ctx context.Context, session string) context.Context {
	return context.WithValue(ctx, sessionKey{}, session)
}

// SessionOf returns the session of a request that the guard let pass.
func SessionOf(ctx context.Context) string {
	session, _ := ctx.Value(sessionKey{}).(string)
	return session
}
