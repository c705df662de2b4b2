package authority

import "fmt"

// Awaited refuses a name that namespaces wait for, "namespaces a, b": whoever made a namespace of that name would get their
// secrets, and they its. Any of the ways is enough: cl, or authority over each of those that wait.
func Awaited(waiting, name string) string {
	return fmt.Sprintf("%s wait for a parent named %q", waiting, name)
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
