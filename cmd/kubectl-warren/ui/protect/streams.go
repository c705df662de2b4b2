package protect

import "net/http"

// MaxStreams is how many event streams the server keeps open at a time.
const MaxStreams = 16

// LimitStreams lets next answer at most MaxStreams requests at a time, and refuses others with 503.
func LimitStreams(next http.Handler) http.Handler {
	slots := make(chan struct{}, MaxStreams)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			next.ServeHTTP(w, r)
		default:
			writeRefusal(w, http.StatusServiceUnavailable, "Too many pages are open: close some.")
		}
	})
}
