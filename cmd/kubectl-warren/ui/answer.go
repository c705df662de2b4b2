package ui

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/ui/protect"
)

var errUnknownAnswer = fmt.Errorf("%w: the answer to a form is kept only for the browser that sent the form, and at most until kubectl "+
	"warren ui ends; to see whether the change was made, look at the object", errUnknownPage)

// leadTo keeps the answer to a form, and leads the browser to its page. So the way back never asks the browser to send
// a form again.
func (v *server) leadTo(w http.ResponseWriter, r *http.Request, page *actionPage, err error) {
	if err != nil {
		page.Error = describeFailure(err)
	}
	id := v.answers.Put(protect.SessionOf(r.Context()), page)
	http.Redirect(w, r, v.guard.Path()+"answers/"+id, http.StatusSeeOther)
}

// serveAnswer shows the answer to a form to the session that has sent it.
func (v *server) serveAnswer(w http.ResponseWriter, r *http.Request) {
	session := protect.SessionOf(r.Context())
	kept, ok := v.answers.Get(session, r.PathValue("id"))
	if !ok {
		v.writeFrame(w, "problem", v.newFrame("Not found"), errUnknownAnswer)
		return
	}
	page := *kept
	if _, waits := v.runs.Get(session, page.RunID); page.RunID != "" && !waits {
		page.RunID, page.Spent = "", true
	}
	frame := v.newFrame(cmp.Or(headingOf(page.Asked), "Change"))
	frame.Error, frame.Body = page.Error, &page
	v.writeFrame(w, "action", frame, nil)
}
