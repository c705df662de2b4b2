package ui

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/rights"
)

// questionPage is the body of the page of questions.
type questionPage struct {
	Asked   url.Values
	WhoCan  *rights.WhoCan
	Why     *rights.Why
	Command string
}

// serveQuestion answers the question in the address as who-can does or, where the question names a user, as why does.
func (v *server) serveQuestion(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query()
	frame, page := v.newFrame("Who may do what"), &questionPage{Asked: asked}
	frame.Body = page
	if asked.Get("resource") == "" {
		v.writeFrame(w, "question", frame, nil)
		return
	}
	v.fillAnswer(r, frame, page)
	v.writeFrame(w, "question", frame, nil)
}

// fillAnswer fills in the answer, or why there is none.
func (v *server) fillAnswer(r *http.Request, frame *frame, page *questionPage) {
	ask := func(name string) string { return strings.TrimSpace(page.Asked.Get(name)) }
	reading := v.newReading()
	question := rights.Question{Verb: ask("verb"), Resource: resourceOf(page.Asked), Subresource: ask("subresource"),
		Namespace: ask("namespace")}
	for _, word := range []string{question.Verb, question.Resource, ask("user")} {
		if strings.HasPrefix(word, "-") { // in the command it would be a flag
			frame.Error = describeFailure(fmt.Errorf("%q begins with -: must be a verb, a resource or a user", word))
			return
		}
	}
	page.Command = v.commandOf(question, ask("user"), page.Asked["group"])
	reporter, question, _, err := rights.ReadQuestion(r.Context(), reading.Invocation, question)
	if err == nil && ask("user") == "" {
		page.WhoCan, err = reporter.WhoCan(r.Context(), question, false)
	} else if err == nil {
		var person rights.Identity
		if person, err = reporter.WhoIs(r.Context(), ask("user"), nonEmpty(page.Asked["group"])); err == nil {
			page.Why, err = reporter.Why(r.Context(), person, question)
		}
	}
	frame.Unread = reading.describeUnread()
	if err != nil {
		frame.Error = describeFailure(err)
	}
}

// resourceOf returns the resource of a question, such as secrets or roles/edit. A name is taken as it is: some end with
// a space.
func resourceOf(asked url.Values) string {
	resource := asked.Get("resource")
	if strings.Contains(resource, "/") {
		return resource
	}
	return strings.TrimSpace(resource)
}

func nonEmpty(values []string) []string {
	var all []string
	for _, value := range values {
		if value = strings.TrimSpace(value); value != "" {
			all = append(all, value)
		}
	}
	return all
}

// commandOf returns the command that answers the same question.
func (v *server) commandOf(q rights.Question, user string, groups []string) string {
	words := []string{"kubectl", "warren", "who-can"}
	if user != "" {
		words = []string{"kubectl", "warren", "why", user}
	}
	words = append(words, q.Verb, q.Resource)
	if q.Namespace != "" {
		words = append(words, "-n", q.Namespace)
	}
	if q.Subresource != "" {
		words = append(words, "--subresource", q.Subresource)
	}
	for _, group := range nonEmpty(groups) {
		if user != "" {
			words = append(words, "--group", group)
		}
	}
	return v.settings.quoteCommand(words...)
}
