package protect

import (
	"fmt"
	"html"
	"net/http"
)

// policy lets a page use only scripts, styles, images and addresses of its own server, and lets no script insert HTML
// from text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' " + plainHash + "; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// plainStyle is how a page looks whose reader has no session, and so gets no style sheet. The policy allows this style
// by plainHash, its SHA-256.
const plainStyle = "body{max-width:40rem;margin:0 auto;padding:1rem;font:1rem/1.45 system-ui,\"Segoe UI\",\"DejaVu Sans\",sans-serif}"

const plainHash = "'sha256-WBTn7WwiwswjZ1Cb+/jC/6f1LoZfI1YZBytJbjfQjjU='"

// MaxBody and MaxHeader bound a request, in bytes.
const (
	MaxBody   = 64 << 10
	MaxHeader = 64 << 10
)

// setHeaders sets the headers of every answer. With Referrer-Policy no-referrer, a browser sends "Origin: null" with a
// form, which isOwnOrigin refuses. So pages have same-origin, except for those whose address holds a token.
func setHeaders(h http.Header, holdsToken bool) {
	referrer := "same-origin"
	if holdsToken {
		referrer = "no-referrer"
	}
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", referrer)
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// writeRefusal answers with a status and one sentence.
func writeRefusal(w http.ResponseWriter, status int, sentence string) {
	writePage(w, status, http.StatusText(status), "", "<p>"+html.EscapeString(sentence)+"</p>")
}

// refuseSession answers a request that has no session, and gets none, with why and what to do.
func refuseSession(w http.ResponseWriter, why string) {
	writeRefusal(w, http.StatusUnauthorized, why+" Press Enter where kubectl warren ui runs: it prints another address.")
}

// writePage writes a page whose head and body the caller has put together from constants and escaped text.
func writePage(w http.ResponseWriter, status int, title, head, body string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"+
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">"+
		"<title>%s</title><style>%s</style>%s</head><body><main><h1>%[1]s</h1>%[4]s</main></body></html>\n",
		html.EscapeString(title), plainStyle, head, body)
}
