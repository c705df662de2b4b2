package attack_test

import "strings"

// What is tried with the timers of sudo on request, with the names that it uses, and with the operator's token.

func long(n int) string { return strings.Repeat("x", n) }

const (
	timersOnly = "namespace warren-sudo has the timers of sudo on request"
	makesOnly  = "in warren-sudo the operator makes timers"
)

// ofTimer is the metadata of a Role or RoleBinding of a grant, with its owner's API version and further fields.
func ofTimer(version string, more ...string) string {
	fields := append([]string{`labels: {$D/access: request, $D/tenant: ledger}`,
		`ownerReferences: [{apiVersion: ` + version + `, kind: Job, name: mine, uid: 0d21e2c4-0000-4000-8000-000000000003}]`}, more...)
	return `{metadata: {` + strings.Join(fields, ", ") + `}, `
}

// becomes is the rule of a grant's Role for a service account.
func becomes(names string) string {
	return `rules: [{apiGroups: [""], resources: [serviceaccounts], resourceNames: [` + names + `], verbs: [impersonate]}]}`
}

// gives is what a grant's RoleBinding has besides its metadata.
func gives(subjects ...string) string {
	return `roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: mine}, subjects: [` + strings.Join(subjects, ", ") + `]}`
}

var timerRows = []row{
	{name: "REQ-X30 a stolen token that may write Jobs everywhere makes, lengthens, completes and deletes no timer; elsewhere it writes Jobs",
		tries: []try{
			refused(jobs, timersOnly,
				create("job warren-sudo/mine", timer(`ttlSecondsAfterFinished: 2000000000`)),
				merge("job warren-sudo/timer", `{spec: {ttlSecondsAfterFinished: 2000000000}}`),
				merge("job warren-sudo/timer", `{spec: {ttlSecondsAfterFinished: null}}`),
				merge("job warren-sudo/timer", held),
				merge("job warren-sudo/timer", `{metadata: {labels: null}}`),
				remove("job warren-sudo/timer")),
			allowed(jobs, create("job plain/mine", timer())),
		}},
	{name: "REQ-X31 a stolen token that may write ServiceAccounts, tokens and Secrets everywhere makes none in warren-sudo", tries: []try{
		refused(jobs, timersOnly,
			create("serviceaccount warren-sudo/ledger", ``), token("serviceaccount warren-sudo/default"),
			create("secret warren-sudo/ledger", tokenOf("default"))),
	}},
	{name: "REQ-X32 whoever was cluster-admin in warren-sudo before the component came gives nobody sudo there, and keeps nobody from it",
		tries: []try{
			refused(owen, timersOnly,
				create("role warren-sudo/mine", `{`+becomes("ledger")), create("rolebinding warren-sudo/mine", bindingTo("cluster-admin", "rob")),
				merge("rolebinding warren-sudo/owners", `{subjects: [`+user("rob")+`]}`),
				create("serviceaccount warren-sudo/ledger", ``), create("job warren-sudo/mine", timer()),
				create("cronjob warren-sudo/mine", `{spec: {schedule: "* * * * *", jobTemplate: {spec: {template: `+restrictedPod+`}}}}`),
				create("resourcequota warren-sudo/none", `{spec: {hard: {count/jobs.batch: "0"}}}`),
				merge("resourcequota warren-sudo/no-pods", `{spec: {hard: {pods: "9"}}}`)),
		}},
	{name: "REQ-X33 the operator's token makes in warren-sudo no timer that lives long, has pods, a finalizer or another controller, and " +
		"no Job elsewhere", tries: []try{
		refused(op, makesOnly,
			create("job warren-sudo/mine", timer(`ttlSecondsAfterFinished: 86401`)), create("job warren-sudo/mine", timer()),
			create("job warren-sudo/mine", timer(`ttlSecondsAfterFinished: 60`, `managedBy: example.com/mine`)),
			create("job warren-sudo/mine", strings.Replace(timer(`ttlSecondsAfterFinished: 60`), "completions: 0", "completions: 1", 1)),
			create("job warren-sudo/mine", strings.Replace(timer(`ttlSecondsAfterFinished: 60`), "metadata: {",
				"metadata: {finalizers: [example.com/held], ", 1))),
		refused(op, "the operator may write Jobs only in warren-sudo", create("job pay-web/mine", timer())),
		denied(op, merge("job warren-sudo/timer", `{spec: {ttlSecondsAfterFinished: 86400}}`)),
	}},
	{name: "REQ-X34 the operator's token makes there no Role or RoleBinding that nothing collects: with an owner of an unknown API version, " +
		"no owner, or a finalizer", tries: []try{
		refused(op, makesOnly,
			create("role warren-sudo/mine", ofTimer("nowhere.example.com/v1")+becomes("ledger")),
			create("role warren-sudo/mine", ofTimer("batch/v1", "finalizers: [example.com/held]")+becomes("ledger")),
			create("role warren-sudo/mine", `{metadata: {labels: {$D/access: request, $D/tenant: ledger}}, `+becomes("ledger")),
			create("rolebinding warren-sudo/mine", ofTimer("nowhere.example.com/v1")+gives(user("mallory"))),
			create("rolebinding warren-sudo/mine", ofTimer("batch/v1", "finalizers: [example.com/held]")+gives(user("mallory"))),
			create("rolebinding warren-sudo/mine", `{metadata: {labels: {$D/access: request}}, `+gives(user("mallory")))),
	}},
	{name: "REQ-X35 the operator's token lets nobody become two tenants, another one than the label's, any service account or a user; and " +
		"no group, system user or second user", tries: []try{
		refused(op, makesOnly,
			create("role warren-sudo/mine", ofTimer("batch/v1")+becomes("ledger, payments")),
			create("role warren-sudo/mine", ofTimer("batch/v1")+becomes("payments")),
			create("role warren-sudo/mine", ofTimer("batch/v1")+becomes("")),
			create("role warren-sudo/mine", ofTimer("batch/v1")+strings.Replace(becomes("ledger"), "serviceaccounts", "users", 1)),
			create("role warren-sudo/mine", ofTimer("batch/v1")+strings.Replace(becomes("ledger"), "[impersonate]", `["*"]`, 1)),
			create("rolebinding warren-sudo/mine", ofTimer("batch/v1")+gives(group("system:authenticated"))),
			create("rolebinding warren-sudo/mine", ofTimer("batch/v1")+gives(user("system:admin"))),
			create("rolebinding warren-sudo/mine", ofTimer("batch/v1")+gives(user("warren:sudo:ledger"))),
			create("rolebinding warren-sudo/mine", ofTimer("batch/v1")+gives(user("rita"), user("mallory"))),
			create("rolebinding warren-sudo/mine", ofTimer("batch/v1")+
				`roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: mine}, subjects: [`+user("mallory")+`]}`)),
	}},
	{name: "REQ-X36 the operator's token neither asks nor decides, and makes no ServiceAccount or ConfigMap in warren-sudo", tries: []try{
		denied(op, create("sudorequest ledger/mine", asking(op.user)), decide("ledger/pending", "lena", "Approve"),
			token("serviceaccount ledger/bot")),
		refused(op, makesOnly, create("configmap warren-sudo/mine", `{metadata: {labels: {$D/access: request}}}`),
			create("serviceaccount warren-sudo/ledger", `{metadata: {labels: {$D/access: request}}}`)),
	}},
	{name: "REQ-X37 nobody but cluster admins binds a temporary sudoer, by service account, user name or group, and none is on a list",
		tries: []try{
			refused(carol, "is what sudoers become",
				create("rolebinding plain/waiting", binding("view", `{kind: ServiceAccount, namespace: warren-sudo, name: future}`)),
				create("rolebinding plain/waiting", binding("view", user(temporarySudoer("future")))),
				create("rolebinding plain/waiting", binding("view", group("system:serviceaccounts:warren-sudo")))),
			refused(ledgerSudoer, "is what sudoers become",
				create("rolebinding ledger/waiting", binding("view", `{kind: ServiceAccount, namespace: warren-sudo, name: payments}`))),
			refused(binder, "is what sudoers become",
				create("clusterrolebinding waiting", binding("view", `{kind: ServiceAccount, namespace: warren-sudo, name: future}`))),
			allowed(carol, create("rolebinding plain/account", binding("view", `{kind: ServiceAccount, namespace: warren-sudoers, name: x}`))),
			unfit(mia, "service accounts of warren-sudo can't be listed",
				merge("lnamespace ledger", `{spec: {users: [{kind: ServiceAccount, namespace: warren-sudo, name: payments}]}}`)),
			unfit(mia, "names that start with system: are reserved",
				merge("lnamespace ledger", `{spec: {managers: [{kind: User, name: "`+temporarySudoer("ledger")+`"}]}}`)),
			unfit(mia, "eligible and approvers are Users and Groups",
				merge("lnamespace ledger", `{spec: {sudoRequests: {approvers: [{kind: ServiceAccount, namespace: ci, name: bot}]}}}`)),
		}},
	{name: "REQ-X38 the RoleBindings of sudo on request in a tree are the operator's: no user, sudoer or temporary sudoer changes or " +
		"deletes them", tries: []try{
		refused(ledgerSudoer, "", merge("rolebinding ledger/warren:requesters", `{subjects: [`+user("bob")+`]}`),
			merge("rolebinding ledger/warren:approvers", `{subjects: [`+user("bob")+`]}`), remove("rolebinding ledger/warren:sudo-requests"),
			merge("rolebinding ledger-web/warren:sudo-requests", `{metadata: {labels: {$D/access: null}}}`)),
		refused(zed, "", remove("rolebinding ledger-web/warren:sudo-requests"), merge("rolebinding ledger/warren:requesters", held),
			create("rolebinding ledger/warren:sudo-more", binding("view", user("zed")))),
		refused(temporary, "", remove("rolebinding ledger/warren:requesters")),
	}},
	{name: "REQ-X39 mia, a manager, raises no limit of sudoers, and sets no time or number of approvals that the schema forbids", tries: []try{
		refused(mia, "spec.limits may be set only by", merge("lnamespace ledger", `{spec: {limits: {sudoers: 9}}}`)),
		unfit(mia, "duration is between 1m and 24h", merge("lnamespace ledger", `{spec: {sudoRequests: {maxDuration: 240h}}}`)),
		unfit(mia, "spec.sudoRequests.approvals", merge("lnamespace ledger", `{spec: {sudoRequests: {approvals: 0}}}`),
			merge("lnamespace ledger", `{spec: {sudoRequests: {approvals: -1}}}`)),
	}},
}
