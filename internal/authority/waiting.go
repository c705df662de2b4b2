package authority

import "fmt"

// Awaited returns the message that refuses a name, because some namespaces wait for a parent of that name. waiting
// names them, with the verb, such as "namespaces a, b wait". The maker of a namespace of that name would get their
// secrets, and they would get its secrets. A user with cl, or with authority over each of the namespaces that wait, may
// use the name.
func Awaited(waiting, name string) string {
	return fmt.Sprintf("%s for a parent named %q", waiting, name)
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
