package protect

import (
	"net"
	"net/http"
)

// isOwnHost reports whether the header Host names the address at which the request arrived. The name localhost is not
// accepted: browsers also look for it at [::1], where another user's program may listen on the same port. Only Host
// reveals a foreign page whose DNS name was bound anew to that address: its requests have no Sec-Fetch headers and, as
// GET, no Origin.
func isOwnHost(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host // without a port
	}
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && host == at.IP.String()
}

// isOwnOrigin reports whether the request comes from a page of this server, or has no header Origin.
func isOwnOrigin(r *http.Request) bool {
	origins, sent := r.Header["Origin"]
	return !sent || len(origins) == 1 && origins[0] == "http://"+r.Host
}

// isOwnSite reports whether the browser states that a page of this server or the person sent the request, or sends no
// header Sec-Fetch-Site. It refuses the value same-site: a page on another port of this machine has it, and that page's
// requests carry the session's cookie.
func isOwnSite(r *http.Request) bool {
	sites, sent := r.Header["Sec-Fetch-Site"]
	return !sent || len(sites) == 1 && (sites[0] == "same-origin" || sites[0] == "none")
}

// isPrefetch reports whether the browser fetches a page that nobody has opened yet. A page on another port can cause
// that, and then Sec-Fetch-Site is none.
func isPrefetch(r *http.Request) bool {
	_, sent := r.Header["Sec-Purpose"]
	return sent
}
