package changes

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/rights"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/sub"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/ui/restrict"
	"github.com/warren-tenancy/warren/internal/text"
)

// Action is a change that a person has asked for and not confirmed yet.
type Action struct {
	// Title describes what is done, such as "Create sub-namespace pay-x below payments".
	Title string
	restrict.Change
	ContentType string
	// Words are the command that sends the same request, without the flags of the connection.
	Words []string
	// Place is the path of the page that shows what has changed, such as namespaces/pay-x.
	Place string
	// Tenant is the tenant whose sudo could allow the change; if it is "", that is the tenant in whose tree Namespace is.
	// Question is the right that the change needs.
	Tenant, Namespace string
	Question          rights.Question
}

// Command returns the command for a shell, with the flags of the connection.
func (a *Action) Command(flags []string) string {
	return Quote(slices.Concat(a.Words, flags)...)
}

// SudoCommand returns the command for a shell that does the same with sudo.
func (a *Action) SudoCommand(flags []string, tenant, reason string) string {
	words := []string{"kubectl", "sudo", "--tenant", tenant}
	if reason != "" {
		words = append(words, "--reason", reason)
	}
	return Quote(slices.Concat(words, a.Words[1:], flags)...)
}

const path = "/apis/tenancy.warren.dev/v1alpha1/"

// CreateSub returns the action that creates a sub-namespace. labels are KEY=VALUE, with commas between.
func CreateSub(parent, name, labels string) (*Action, error) {
	if err := invocation.CheckNamespaces(name, parent); err != nil {
		return nil, err
	}
	var spec v1alpha1.SubNamespaceSpec
	words := []string{"kubectl", "warren", "create", name, "-n", parent}
	if labels = strings.TrimSpace(labels); labels != "" {
		spec.Labels = map[string]v1alpha1.LabelValue{}
		for pair := range strings.SplitSeq(labels, ",") {
			key, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
			if !ok || key == "" || text.Escape(pair) != pair || strings.ContainsAny(pair, `"`) {
				return nil, fmt.Errorf("invalid labels %q: must be KEY=VALUE, with commas between, and without double quotes and invisible characters", labels)
			}
			spec.Labels[key] = v1alpha1.LabelValue(value)
		}
		words = append(words, "--labels", labels)
	}
	body, err := json.Marshal(sub.New(parent, name, spec))
	if err != nil {
		return nil, err
	}
	query := url.Values{"fieldManager": {invocation.FieldOwner}, "fieldValidation": {"Strict"}}
	return &Action{
		Title:       "Create sub-namespace " + name + " below " + parent,
		Change:      restrict.Change{Method: http.MethodPost, URI: path + "namespaces/" + parent + "/subnamespaces?" + query.Encode(), Body: body},
		ContentType: "application/json", Words: words, Place: "namespaces/" + name, Namespace: parent,
		Question: rights.Question{Verb: "create", Group: v1alpha1.GroupVersion.Group, Resource: "subnamespaces", Namespace: parent},
	}, nil
}

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// marshalSorted writes a value as JSON with the keys in the order in which kubectl patch sends them. It escapes
// characters that would hide or reorder parts of the command on a page. For the API server, the JSON means the same.
func marshalSorted(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var sorted any
	if err := json.Unmarshal(data, &sorted); err != nil {
		return nil, err
	}
	data, err = json.Marshal(sorted)
	return text.EscapeJSON(data), err
}

// patchTenant returns the action that changes an LNamespace, with the request that kubectl patch sends.
func patchTenant(tenant, title string, operations ...operation) (*Action, error) {
	if err := invocation.CheckName("tenant", tenant); err != nil {
		return nil, err
	}
	body, err := marshalSorted(operations)
	if err != nil {
		return nil, err
	}
	return &Action{
		Title:       title,
		Change:      restrict.Change{Method: http.MethodPatch, URI: path + "lnamespaces/" + tenant + "?fieldManager=kubectl-patch", Body: body},
		ContentType: "application/json-patch+json",
		Words:       []string{"kubectl", "patch", "lnamespaces", tenant, "--type=json", "-p", string(body)}, Place: "tenants/" + tenant, Tenant: tenant,
		Question: rights.Question{Verb: "patch", Group: v1alpha1.GroupVersion.Group, Resource: "lnamespaces", Name: tenant},
	}, nil
}

// listOf returns one of the two lists of a tenant that the page can change: users or sudoers.
func listOf(tenant *v1alpha1.LNamespace, list string) ([]v1alpha1.Subject, error) {
	switch list {
	case "users":
		return tenant.Spec.Users, nil
	case "sudoers":
		return tenant.Spec.Sudoers, nil
	}
	return nil, fmt.Errorf("invalid list %q: must be users or sudoers", list)
}

var errListChanged = errors.New("the list has changed: open the page again")

// storedSubject is an entry as the API server stores it: always with a namespace, because the CRD's default for it is
// the empty string. Operation "test" compares with the stored entry.
type storedSubject struct {
	Kind      v1alpha1.SubjectKind `json:"kind"`
	Namespace string               `json:"namespace"`
	Name      string               `json:"name"`
}

func storedSubjects(subjects []v1alpha1.Subject) []storedSubject {
	stored := make([]storedSubject, len(subjects))
	for i, subject := range subjects {
		stored[i] = storedSubject(subject)
	}
	return stored
}

// AddSubject returns the action that adds a subject to the list users or sudoers of a tenant. The API server refuses
// the action if the list has changed since it was read or, for an empty list, if the spec has.
func AddSubject(tenant *v1alpha1.LNamespace, list string, subject v1alpha1.Subject) (*Action, error) {
	present, err := listOf(tenant, list)
	switch {
	case err != nil:
		return nil, err
	case subject.Name == "":
		return nil, fmt.Errorf("name the %s to add", subject.Kind)
	case slices.Contains(present, subject):
		return nil, fmt.Errorf("%s is one of the %s already", subject, list)
	}
	title := fmt.Sprintf("Add %s to the %s of %s", subject, list, tenant.Name)
	if len(present) == 0 { // a list that may not be there can't be tested, but the generation counts every change of the spec
		return patchTenant(tenant.Name, title, operation{"test", "/metadata/generation", tenant.Generation},
			operation{"add", "/spec/" + list, []v1alpha1.Subject{subject}})
	}
	return patchTenant(tenant.Name, title, operation{"test", "/spec/" + list, storedSubjects(present)},
		operation{"add", "/spec/" + list + "/-", subject})
}

// RemoveSubject returns the action that removes the subject at index place of the list users or sudoers, if it is still
// there. subject is its text as the person saw it.
func RemoveSubject(tenant *v1alpha1.LNamespace, list string, place int, subject string) (*Action, error) {
	present, err := listOf(tenant, list)
	if err != nil {
		return nil, err
	}
	if place < 0 || place >= len(present) || present[place].String() != subject {
		return nil, errListChanged
	}
	at := "/spec/" + list + "/" + strconv.Itoa(place)
	return patchTenant(tenant.Name, fmt.Sprintf("Take %s off the %s of %s", present[place], list, tenant.Name),
		operation{"test", at, storedSubject(present[place])}, operation{Op: "remove", Path: at})
}
