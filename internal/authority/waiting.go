package authority

import "fmt"

// Awaited returns the words that refuse a name for whose bearer namespaces wait as their parent; waiting names them, "namespaces a,
// b". The maker of a namespace of that name would get their secrets, and they would get its secrets. The name is free to a user
// with cl, or with authority over each of the namespaces that wait.
func Awaited(waiting, name string) string {
	return fmt.Sprintf("%s wait for a parent named %q", waiting, name)
}

// OverEach returns the questions for authority over each of these namespaces. A yes to OverAll makes them needless.
func OverEach(namespaces []string) []Question {
	var questions []Question
	for _, name := range namespaces {
		questions = append(questions, Question{Right: Administer, Namespace: name})
	}
	return questions
}

// OverAll is the question for the right to update namespaces cluster-wide.
var OverAll = Question{Right: UpdateNamespaces}
