package sudo_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gateway is an API server behind one that refuses all impersonation, with the words of Teleport. bob is a sudoer of
// payments, and may read no namespace.
func gateway(t *testing.T) string {
	t.Helper()
	refuse := func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: text})
	}
	answer := func(w http.ResponseWriter, object any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(object)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Impersonate-User") != "":
			refuse(w, "impersonation request has been denied")
		case strings.HasSuffix(r.URL.Path, "/selfsubjectreviews"):
			answer(w, authenticationv1.SelfSubjectReview{
				TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
				Status:   authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: "bob"}}})
		case strings.HasSuffix(r.URL.Path, "/selfsubjectrulesreviews"):
			rule := func(resource, name string) authorizationv1.ResourceRule {
				return authorizationv1.ResourceRule{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{resource},
					ResourceNames: []string{name}}
			}
			answer(w, authorizationv1.SelfSubjectRulesReview{
				TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectRulesReview"},
				Status: authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{rule("users", "bob"),
					rule("groups", "payments-sudoers")}}})
		default:
			refuse(w, `namespaces "pay-web" is forbidden: User "bob" cannot get resource "namespaces" in API group "" in the namespace "pay-web"`)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestGateway(t *testing.T) {
	for name, line := range map[string][]string{
		"by namespace": {"get", "pods", "-n", "pay-web"}, "by tenant": {"--tenant", "payments", "get", "pods"},
	} {
		t.Run("ACC-P15 behind a gateway that refuses impersonation, kubectl sudo says so before kubectl runs, and names what to allow: "+name,
			func(t *testing.T) {
				status, _, problems := run(t, program(t), append([]string{"--server", gateway(t)}, line...)...)
				if status == 0 || !strings.Contains(problems, "a gateway in front of the API server refuses impersonation") ||
					!strings.Contains(problems, "user bob and group payments-sudoers") || strings.Contains(problems, "does not exist") {
					t.Errorf("status %d, %s", status, problems)
				}
			})
	}
}
