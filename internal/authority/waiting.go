package authority

import (
	"fmt"

	"github.com/warren-tenancy/warren/internal/forest"
)

// Waiting asks whoever makes a namespace of a name that others wait for: by that name it would get their secrets, and
// they its. Any of the ways is enough: cl, or authority over each of those that wait.
func Waiting(s *forest.Snapshot, name string) (waiting []string, refusal string) {
	waiting = s.Waiting(name)
	if len(waiting) == 0 {
		return nil, ""
	}
	return waiting, fmt.Sprintf("namespaces %s wait for a parent named %q", forest.Few(waiting), name)
}

// OverEach are the questions for authority over each of those namespaces; OverAll is the one that makes them needless.
func OverEach(namespaces []string) []Question {
	var questions []Question
	for _, name := range namespaces {
		questions = append(questions, Question{Right: Administer, Namespace: name})
	}
	return questions
}

// OverAll is what a cluster admin may.
var OverAll = Question{Right: UpdateNamespaces}
