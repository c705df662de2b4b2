package attack_test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The people of tenant ledger, in which sudo on request is used.
var (
	rita = actor{user: "rita"}                             // eligible by name, with sudo in force; a sudoer of annex
	rob  = actor{user: "rob"}                              // eligible by group ledger-oncall
	lena = actor{user: "lena"}                             // an approver by name
	lou  = actor{user: "lou"}                              // an approver by group ledger-leads
	zed  = actor{user: "zed"}                              // cluster-admin in ledger and ledger-web by RoleBinding
	owen = actor{user: "owen"}                             // cluster-admin in warren-sudo by RoleBinding
	jobs = actor{user: "jobs"}                             // a stolen token that may write Jobs, ServiceAccounts, tokens and Secrets
	bot  = actor{user: "system:serviceaccount:ledger:bot"} // cluster-admin in ledger

	temporary    = becoming(rita, temporarySudoer("ledger"))                  // rita with sudo on request
	withGroup    = becoming(rita, temporarySudoer("ledger"), "annex-sudoers") // the same, with the group of a standing sudo
	ledgerSudoer = actor{user: "bob", as: rest.ImpersonationConfig{UserName: "bob", Groups: []string{"ledger-sudoers"}}}
)

func temporarySudoer(tenant string) string { return "system:serviceaccount:warren-sudo:" + tenant }

// askers are the users of these rows, with their groups.
func askers() map[string][]string {
	return map[string][]string{"rita": nil, "rob": {"ledger-oncall"}, "lena": nil, "lou": {"ledger-leads"}, "zed": nil, "owen": nil,
		"jobs": nil, bot.user: {"system:serviceaccounts", "system:serviceaccounts:ledger"}}
}

// asking is the content of a SudoRequest. more are further fields of spec.
func asking(user string, more ...string) string {
	fields := append([]string{`user: "` + user + `"`, "reason: restore the ledger", "duration: 2h"}, more...)
	return `{spec: {` + strings.Join(fields, ", ") + `}}`
}

// decide adds a decision. more are further fields.
func decide(place, user, verdict string, more ...string) request {
	value := strings.Join(append([]string{`user: "` + user + `", verdict: ` + verdict}, more...), ", ")
	return jsonPatch("sudorequest "+place, `[{op: add, path: /spec/decisions/-, value: {`+value+`}}]`)
}

// token asks for a token of a service account.
func token(target string) request {
	return request{"create a token of " + target, target, func(ctx context.Context, c caller) error {
		asked := &unstructured.Unstructured{Object: content(`{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {}}`)}
		return c.SubResource("token").Create(ctx, object(target, ""), asked)
	}}
}

// ledgers are the tenants of these rows, and who has been given what in them.
var ledgers = []request{
	create("lnamespace ledger", `{spec: {users: [{kind: User, name: alice}], managers: [{kind: User, name: mia}],
  sudoers: [{kind: User, name: bob}], limits: {subNamespaces: 5, depth: 2},
  sudoRequests: {eligible: [{kind: User, name: rita}, {kind: Group, name: ledger-oncall}],
  approvers: [{kind: User, name: lena}, {kind: Group, name: ledger-leads}],
  breakGlass: false}}}`),
	create("lnamespace annex", `{spec: {sudoers: [{kind: User, name: rita}], managers: [{kind: User, name: mia}]}}`),
	create("subnamespace ledger/ledger-web", ``),
	create("rolebinding warren-sudo/owners", bindingTo("cluster-admin", "owen")),
	// Not every verb: with impersonate on service accounts of all namespaces, they would be everybody.
	create("clusterrole write-jobs", `{rules: [{verbs: [get, list, create, update, patch, delete], apiGroups: ["", batch],
  resources: [jobs, jobs/status, serviceaccounts, serviceaccounts/token, secrets]}]}`),
	create("clusterrolebinding write-jobs", bindingTo("write-jobs", "jobs")),
	// A right that somebody granted to the operator by mistake.
	create("role pay-web/mistaken-jobs", `{rules: [{apiGroups: [batch], resources: [jobs], verbs: [create]}]}`),
	create("rolebinding pay-web/mistaken-jobs", `{roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: mistaken-jobs},
  subjects: [{kind: ServiceAccount, namespace: warren-system, name: warren-controller-manager}]}`),
}

// timers are made once no operator runs that would end them: no request has them.
var timers = []request{create("job warren-sudo/timer", timer(`ttlSecondsAfterFinished: 7200`))}

// ledgered is made in ledger once it is a tenant's root.
var ledgered = []request{
	create("rolebinding ledger/zeds", bindingTo("cluster-admin", "zed")),
	create("rolebinding ledger-web/zeds", bindingTo("cluster-admin", "zed")),
	create("serviceaccount ledger/bot", ``),
	create("serviceaccount ledger/strong", ``),
	create("rolebinding ledger/bots",
		`{roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: ServiceAccount, `+
			`namespace: ledger, name: bot}]}`),
	create("secret ledger/weak-token", tokenOf("default")),
	create("role ledger/readers", rule(`apiGroups: [""], resources: [configmaps], verbs: [get]`)),
}

// timer is the content of a Job of no completions.
func timer(more ...string) string {
	fields := append([]string{"completions: 0, parallelism: 0, template: " + restrictedPod}, more...)
	return `{metadata: {labels: {$D/access: request}}, spec: {` + strings.Join(fields, ", ") + `}}`
}

const restrictedPod = `{spec: {restartPolicy: Never,
  securityContext: {runAsNonRoot: true, runAsUser: 65534, seccompProfile: {type: RuntimeDefault}},
  containers: [{name: none, image: none.invalid/none, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}}`

// tokenOf is the content of a Secret with the token of a service account.
func tokenOf(account string) string {
	return `{type: kubernetes.io/service-account-token, metadata: {annotations: {kubernetes.io/service-account.name: ` + account + `}}}`
}

// askForSudo makes the tenants, and has rita get sudo in ledger, which lasts after the operator stops. Request pending stays without
// decisions.
func (f *fixture) askForSudo(ctx context.Context) {
	GinkgoHelper()
	f.given(ctx, admin, ledgers...)
	made := time.Now()
	for _, target := range []string{"rolebinding ledger/warren:requesters", "rolebinding ledger/warren:approvers",
		"rolebinding ledger-web/warren:sudo-requests", "rolebinding annex/warren:sudoers"} {
		f.appears(ctx, target)
	}
	f.given(ctx, admin, ledgered...)
	// A request must be younger than its tenant, and creation times have whole seconds.
	Eventually(ctx, time.Now).Should(BeTemporally(">", made.Add(2*time.Second)))
	f.given(ctx, rita, create("sudorequest ledger/asked", asking("rita")), create("sudorequest ledger/pending", asking("rita")))
	f.given(ctx, lena, decide("ledger/asked", "lena", "Approve"))
	f.given(ctx, temporary, list("secret ledger-web/*"))
	f.given(ctx, withGroup, list("secret annex/*"))
	f.stateIs(ctx, "ledger/pending", "Pending")
}

// requestState returns the reason of condition Active of a SudoRequest.
func (f *fixture) requestState(ctx context.Context, name string) (string, error) {
	u := object("sudorequest "+name, "")
	if err := f.Admin().Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
		return "", err
	}
	conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		reason, _, _ := unstructured.NestedString(c.(map[string]any), "reason")
		return reason, err
	}
	return "", err
}

// stateIs waits until condition Active of a SudoRequest has a reason.
func (f *fixture) stateIs(ctx context.Context, name, reason string) {
	GinkgoHelper()
	Eventually(ctx, f.requestState).WithArguments(name).Should(Equal(reason), name)
}
