package attack_test

// What people try with SudoRequests, and with sudo on request while it lasts.

const (
	yourself  = "ask and decide as yourself"
	ownName   = "spec.user and spec.group are who you are, and a new request has no decisions"
	bearsName = "a decision bears the name of whoever makes it"
	lasting   = "sudo on request ends with its time"
)

// unfit expects 422 from the schema.
func unfit(by actor, says string, requests ...request) try {
	return try{by: by, requests: requests, refuser: says, code: 422}
}

var requestRows = []row{
	// RBAC: the Role of a grant names one service account, and its RoleBinding one user.
	{name: "REQ-X10 whoever is not in force becomes no temporary sudoer: neither eve, nor somebody eligible, an approver, the manager, " +
		"a user, a sudoer, or the operator's token", tries: []try{
		denied(becoming(actor{user: "eve"}, temporarySudoer("ledger")), list("secret ledger/*")),
		denied(becoming(rob, temporarySudoer("ledger")), list("secret ledger/*")),
		denied(becoming(lena, temporarySudoer("ledger")), list("secret ledger/*")),
		denied(becoming(mia, temporarySudoer("ledger")), list("secret ledger/*")),
		denied(becoming(alice, temporarySudoer("ledger")), list("secret ledger/*")),
		denied(becoming(actor{user: "bob"}, temporarySudoer("ledger")), list("secret ledger/*")),
		denied(becoming(op, temporarySudoer("ledger")), list("secret ledger/*")),
		denied(becoming(jobs, temporarySudoer("ledger")), list("secret ledger/*")),
		allowed(temporary, list("secret ledger/*"), list("secret ledger-web/*")),
	}},
	{name: "REQ-X11 rita with sudo on request in ledger becomes no temporary sudoer of another tenant or with another group, and no other " +
		"service account", tries: []try{
		denied(becoming(rita, temporarySudoer("payments")), list("secret payments/*")),
		denied(becoming(rita, temporarySudoer("annex")), list("secret annex/*")),
		denied(becoming(rita, temporarySudoer("default")), list("secret ledger/*")),
		denied(becoming(rita, "system:serviceaccount:ledger:bot"), list("secret ledger/*")),
		denied(becoming(rita, "system:serviceaccount:warren-system:warren-controller-manager"), list("secret ledger/*")),
		denied(becoming(rita, temporarySudoer("ledger"), "system:masters"), list("secret ledger/*")),
		denied(becoming(rita, temporarySudoer("ledger"), "ledger-sudoers"), list("secret ledger/*")),
		denied(becoming(rita, temporarySudoer("ledger")+":x"), list("secret ledger/*")),
		denied(becoming(rita, "system:serviceaccount:warren-sudo/ledger"), list("secret ledger/*")),
	}},
	{name: "REQ-X12 the temporary sudoer has nothing outside of the tree: no other tenant, plain namespace, warren-sudo, CSR, " +
		"ClusterRoleBinding, LNamespace or Namespace", tries: []try{
		denied(temporary, list("secret victim/*"), list("secret pasture/*"), list("secret warren-sudo/*"), list("secret default/*"),
			list("job warren-sudo/*"), list("lnamespace *"), list("certificatesigningrequest *"),
			create("certificatesigningrequest mine",
				`{spec: {request: b25l, signerName: kubernetes.io/kube-apiserver-client, usages: [client auth]}}`),
			create("clusterrolebinding mine", bindingTo("cluster-admin", "rita")),
			create("namespace mine", ``),
			merge("lnamespace ledger", `{spec: {sudoers: [{kind: User, name: rita}]}}`)),
	}},
	{name: "REQ-X13 the temporary sudoer writes no Role or RoleBinding, also by server-side apply, a generated name or deletecollection",
		tries: []try{
			refused(temporary, lasting,
				create("rolebinding ledger/mine", bindingTo("cluster-admin", "rita")),
				create("rolebinding ledger-web/mine-*", bindingTo("view", "rita")),
				create("role ledger/mine", rule(`apiGroups: ["*"], resources: ["*"], verbs: ["*"]`)),
				merge("rolebinding ledger/zeds", `{subjects: [`+user("rita")+`]}`),
				merge("role ledger/readers", `{rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}`),
				merge("role ledger/readers", ours("$D/propagate", "update")),
				remove("rolebinding ledger/zeds"), sweep("role ledger/*"),
				kubectl("rolebinding ledger/mine", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, `+
					`metadata: {name: mine, namespace: ledger}, `+bindingTo("admin", "rita")[1:], "apply", "--server-side", "-f", "-")),
		}},
	{name: "REQ-X14 the temporary sudoer gets no token: none of a service account, no Secret that holds one, and no Secret whose token " +
		"becomes that of another account", tries: []try{
		refused(temporary, lasting,
			token("serviceaccount ledger/strong"), token("serviceaccount ledger-web/default"),
			create("secret ledger/mine", tokenOf("strong")), create("secret ledger/mine-*", tokenOf("strong")),
			merge("secret ledger/weak-token", `{metadata: {annotations: {kubernetes.io/service-account.name: strong}}}`),
			jsonPatch("secret ledger/weak-token", `[{op: remove, path: /data/token}]`),
			put("secret ledger/weak-token", `{metadata: {annotations: {kubernetes.io/service-account.name: bot}}, data: null}`)),
		allowed(temporary, create("secret ledger/opaque", `{stringData: {key: mine}}`),
			merge("secret ledger/opaque", `{stringData: {key: two}}`)),
	}},
	{name: "REQ-X15 the temporary sudoer changes no HierarchyConfiguration, label of a namespace or tree, and deletes no namespace; a " +
		"group of a standing sudo beside it does not help", tries: []try{
		refused(temporary, lasting, create("hierarchyconfiguration ledger-web/hierarchy", `{spec: {parent: annex}}`),
			create("hierarchyconfiguration ledger/hierarchy", `{spec: {allowCascadingDeletion: true}}`)),
		refused(withGroup, lasting, create("hierarchyconfiguration ledger-web/hierarchy", `{spec: {parent: annex}}`),
			create("hierarchyconfiguration annex/hierarchy", `{spec: {parent: ledger}}`),
			create("rolebinding annex/mine", bindingTo("cluster-admin", "rita"))),
		refused(temporary, "belongs to a tenant",
			merge("namespace ledger-web", ours("pod-security.kubernetes.io/enforce", "privileged")),
			merge("namespace ledger-web", ours("$D/parent", "annex")), remove("namespace ledger-web"), remove("namespace ledger")),
	}},
	{name: "REQ-X16 neither the temporary sudoer nor a sudoer keeps others from asking: a quota that limits SudoRequests is refused, one " +
		"of pods is allowed", tries: []try{
		refused(temporary, "may not limit", create("resourcequota ledger/none", `{spec: {hard: {count/sudorequests.$D: "0"}}}`)),
		refused(ledgerSudoer, "may not limit", create("resourcequota ledger/none-*", `{spec: {hard: {count/sudorequests.$D: "1"}}}`)),
		allowed(temporary, create("resourcequota ledger/pods", `{spec: {hard: {pods: "50"}}}`)),
	}},
	{name: "REQ-X17 the temporary sudoer, a sudoer, and a service account with all rights in the root neither ask nor decide", tries: []try{
		refused(temporary, yourself, create("sudorequest ledger/mine", asking(temporarySudoer("ledger"))),
			decide("ledger/pending", temporarySudoer("ledger"), "Approve"), decide("ledger/asked", temporarySudoer("ledger"), "End"),
			merge("sudorequest ledger/pending", ours("tier", "web"))),
		refused(ledgerSudoer, yourself, create("sudorequest ledger/mine", asking("bob")), decide("ledger/pending", "bob", "Deny")),
		refused(bot, yourself, create("sudorequest ledger/mine", asking(bot.user)), decide("ledger/pending", bot.user, "Approve"),
			decide("ledger/pending", "lena", "Approve")),
	}},
	{name: "REQ-X18 whoever has all verbs in the root writes no status of a SudoRequest, no owner and no finalizer, and deletes none",
		tries: []try{
			refused(zed, "the status of a SudoRequest is the operator's",
				merge("sudorequest ledger/pending", `{status: {startTime: "2026-01-01T00:00:00Z", timer: x}}`, "status"),
				put("sudorequest ledger/pending", `{status: {conditions: null}}`, "status"),
				merge("sudorequest ledger/asked", `{status: {endTime: "2036-01-01T00:00:00Z"}}`, "status")),
			refused(ledgerSudoer, "the status of a SudoRequest is the operator's",
				merge("sudorequest ledger/pending", `{status: {timer: x}}`, "status")),
			refused(zed, "no owners and no finalizers", merge("sudorequest ledger/pending", owned), merge("sudorequest ledger/pending", held),
				create("sudorequest ledger/mine", `{metadata: {finalizers: [example.com/held]}, `+asking("zed")[1:])),
			refused(zed, "kept as a record", remove("sudorequest ledger/pending"), sweep("sudorequest ledger/*")),
			refused(temporary, "kept as a record", remove("sudorequest ledger/asked"), sweep("sudorequest ledger/*")),
		}},
	{name: "REQ-X19 rob asks in no other name: not as rita, in capitals, as his group or a service account, or by a group that is not " +
		"his", tries: []try{
		refused(rob, ownName,
			create("sudorequest ledger/mine", asking("rita")), create("sudorequest ledger/mine", asking("Rob")),
			create("sudorequest ledger/mine", asking("rob ")), create("sudorequest ledger/mine", asking("rоb")), // Cyrillic о
			create("sudorequest ledger/mine", asking("ledger-oncall")), create("sudorequest ledger/mine", asking(bot.user)),
			create("sudorequest ledger/mine", asking("warren:sudo:ledger")), create("sudorequest ledger/mine", asking("a/b:c%")),
			create("sudorequest ledger/mine", asking("rob", "group: ledger-leads")),
			create("sudorequest ledger/mine", asking("rob", "group: Ledger-oncall")),
			create("sudorequest ledger/mine", asking("rob", "decisions: [{user: rob, verdict: Approve}]")),
			create("sudorequest ledger/mine", asking("rob", "decisions: [{user: lena, verdict: Approve}]"))),
		unfit(rob, "spec.user", create("sudorequest ledger/mine", asking(""))),
		unfit(rob, "spec.group", create("sudorequest ledger/mine", asking("rob", `group: ""`))),
	}},
	{name: "REQ-X20 nobody decides in another name or by a group that is not theirs: neither lena, lou nor the manager", tries: []try{
		refused(lena, bearsName, decide("ledger/pending", "lou", "Approve"), decide("ledger/pending", "Lena", "Approve"),
			decide("ledger/pending", "lenа", "Approve"), // Cyrillic а
			decide("ledger/pending", "lena", "Approve", "group: ledger-leads"),
			decide("ledger/pending", "ledger-leads", "Approve")),
		refused(lou, bearsName, decide("ledger/pending", "lena", "Approve", "group: ledger-leads"), decide("ledger/pending", "lou", "Deny",
			"group: system:masters")),
		refused(mia, bearsName, decide("ledger/pending", "lena", "Approve"), decide("ledger/asked", "rita", "End")),
	}},
	{name: "REQ-X21 rita decides nothing on her own request, and whoever is eligible alone decides on none: they can't use up the room " +
		"for decisions", tries: []try{
		refused(rita, "nobody decides on his own request", decide("ledger/pending", "rita", "Approve"), decide("ledger/pending", "rita", "Deny")),
		refused(rita, bearsName, decide("ledger/pending", "mia", "End")),
		refused(rob, "only approvers and managers decide", decide("ledger/pending", "rob", "Approve"),
			decide("ledger/pending", "rob", "Deny"), decide("ledger/asked", "rob", "End"),
			decide("ledger/asked", "rob", "Approve", "group: ledger-oncall")),
		denied(alice, decide("ledger/pending", "alice", "Deny")),
		denied(actor{user: "eve"}, decide("ledger/pending", "eve", "Approve"), create("sudorequest ledger/mine", asking("eve"))),
	}},
	{name: "REQ-X22 nobody changes what was asked or decided, or its comment, and a comment has no control characters", tries: []try{
		unfit(lena, "a request can't be changed", merge("sudorequest ledger/pending", `{spec: {duration: 24h}}`),
			merge("sudorequest ledger/pending", `{spec: {user: lou}}`), merge("sudorequest ledger/asked", `{spec: {breakGlass: true}}`)),
		unfit(mia, "a decision can't be changed or taken back", merge("sudorequest ledger/asked", `{spec: {decisions: []}}`),
			merge("sudorequest ledger/asked", `{spec: {decisions: null}}`),
			merge("sudorequest ledger/asked", `{spec: {decisions: [{user: lena, verdict: Approve, comment: late}]}}`)),
		unfit(lena, "Duplicate value", decide("ledger/asked", "lena", "Approve", "comment: twice")),
		unfit(lena, "comment is one line without control characters", decide("ledger/pending", "lena", "Deny", `comment: "\e[2J"`),
			decide("ledger/pending", "lena", "Deny", `comment: "no\ngranted by mia"`),
			decide("ledger/pending", "lena", "Deny", `comment: "\u202e"`)),
	}},
	{name: "REQ-X23 whoever has all rights in a namespace that is no root makes no SudoRequest there", tries: []try{
		refused(zed, "lies in the root of a tenant", create("sudorequest ledger-web/mine", asking("zed")),
			create("sudorequest ledger-web/mine-*", asking("zed"))),
		refused(carol, "lies in the root of a tenant", create("sudorequest plain/mine", asking("carol"))),
		refused(owen, "lies in the root of a tenant", create("sudorequest warren-sudo/mine", asking("owen"))),
	}},
	{name: "REQ-X24 rob makes no SudoRequest large: more than 8 annotations, or one of more than 8192 characters, are refused", tries: []try{
		refused(rob, "at most 8 annotations of 8192 characters", merge("sudorequest ledger/pending", notes("note", long(9000))),
			merge("sudorequest ledger/pending", `{metadata: {annotations: {a1: x, a2: x, a3: x, a4: x, a5: x, a6: x, a7: x, a8: x, a9: x}}}`),
			create("sudorequest ledger/mine", `{metadata: {annotations: {note: `+long(9000)+`}}, `+asking("rob")[1:])),
		unfit(rob, "spec.reason", create("sudorequest ledger/mine", `{spec: {user: rob, reason: `+long(1025)+`, duration: 1h}}`)),
	}},
}
