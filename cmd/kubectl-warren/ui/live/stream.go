package live

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// heartbeat is how often a stream without new versions sends a sign that it still works.
const heartbeat = 15 * time.Second

// writePatience is how long a browser may take to read a message.
const writePatience = 30 * time.Second

// ServeChanges answers with what is different from the version that the parameter since names.
func (f *Follower) ServeChanges(w http.ResponseWriter, r *http.Request) {
	message, _ := f.book.Since(sinceOf(r))
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(message)
}

// ServeEvents returns a handler that sends each new version as an event until end is done. Then it sends the cause of
// end, last of all.
func (f *Follower) ServeEvents(end context.Context) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.pages.Add(1)
		defer f.pages.Add(-1)
		w.Header().Set("Content-Type", "text/event-stream")
		s := stream{w, http.NewResponseController(w)}
		s.sendText(": open\n\n")
		version, isFirst := sinceOf(r), true // the first message tells the page that its program answers
		for {
			message, next := f.book.Since(version)
			if (isFirst || message.Version != version) && !s.sendMessage(message) {
				return
			}
			version, isFirst = message.Version, false
			select {
			case <-r.Context().Done():
				return
			case <-end.Done():
				data, _ := json.Marshal(map[string]string{"proof": f.book.Proof, "cause": context.Cause(end).Error()})
				s.sendText(fmt.Sprintf("event: end\ndata: %s\n\n", data))
				return
			case <-time.After(heartbeat):
				if !s.sendText(": nothing new\n\n") {
					return
				}
			case <-next:
			}
		}
	})
}

func sinceOf(r *http.Request) int {
	since, err := strconv.Atoi(r.URL.Query().Get("since"))
	if err != nil {
		return 0
	}
	return since
}

// stream writes events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (s stream) sendMessage(message Message) bool {
	data, err := json.Marshal(message)
	return err == nil && s.sendText(fmt.Sprintf("data: %s\n\n", data))
}

func (s stream) sendText(text string) bool {
	_ = s.control.SetWriteDeadline(time.Now().Add(writePatience))
	if _, err := s.w.Write([]byte(text)); err != nil {
		return false
	}
	return s.control.Flush() == nil
}
