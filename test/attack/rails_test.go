package attack_test

// Rails are the objects of a template, or of a root, that hold a tenant's namespaces in bounds.

var railRows = []row{
	{name: "SEC-C30 bob writes status.used, by PATCH and PUT, or status.hard of a copied ResourceQuota, or the status of a copied " +
		"Service: all refused; SEC-C30 users who may update such a status cluster-wide may write it: a ServiceAccount that of the Service, " +
		"cl that of the ResourceQuota; bob that of his own quota", tries: []try{
		refused(bob, "quota is a copy of payments/quota",
			merge("resourcequota pay-quota/quota", `{status: {used: {count/configmaps: "0"}}}`, "status"),
			merge("resourcequota pay-quota/quota", `{status: {hard: {count/configmaps: "5000"}}}`, "status"),
			put("resourcequota pay-quota/quota", `{status: {used: {count/configmaps: "0"}}}`, "status")),
		refused(bob, "web is a copy of payments/web",
			merge("service pay-service/web", forgedCondition, "status")),
		allowed(robot, merge("service pay-service/web", forgedCondition, "status")),
		allowed(clara, merge("resourcequota pay-quota/quota", `{status: {used: {count/configmaps: "1"}}}`, "status")),
		allowed(bob, merge("resourcequota pay-quota/own", `{status: {used: {count/pods: "0"}}}`, "status")),
	}},
	{name: "SEC-C31 alice and bob create in pay-web a ConfigMap, Secret (generateName), ResourceQuota or NetworkPolicy with such a name: " +
		"refused, `names that start with warren-rail-`; ConfigMap rail-limits: allowed; SEC-C31 carol in plain and in a template, cl in a " +
		"tenant, and op as a copy, may create a ConfigMap whose name begins with warren-rail-", tries: []try{
		refused(alice, "names that start with warren-rail-",
			create("configmap pay-web/warren-rail-limits", `{data: {key: mine}}`),
			create("secret pay-web/warren-rail-*", `{}`)),
		refused(bob, "names that start with warren-rail-",
			create("resourcequota pay-web/warren-rail-quota", `{spec: {hard: {count/pods: "5000"}}}`),
			create("networkpolicy pay-web/warren-rail-open", `{spec: {podSelector: {}}}`)),
		allowed(alice, create("configmap pay-web/rail-limits", `{data: {key: mine}}`)),
		allowed(carol, create("configmap plain/warren-rail-limits", `{data: {key: mine}}`),
			create("configmap tmpl/warren-rail-limits", `{data: {key: mine}}`)),
		allowed(clara, create("configmap victim/warren-rail-limits", `{data: {key: mine}}`)),
		allowed(op, create("configmap orders/warren-rail-limits", marked("inherited-from: tmpl", `{data: {key: one}}`))),
	}},
	{name: "SEC-C32 bob creates in pay-web a quota that limits resourcequotas, limitranges or networkpolicies, or adds that limit to his " +
		"quota: refused, `may not limit`; SEC-C32 bob limits pods; carol in plain, and cl in a tenant, create a quota of resourcequotas: " +
		"all allowed", tries: []try{
		refused(bob, "may not limit",
			create("resourcequota pay-web/none", `{spec: {hard: {count/resourcequotas: "0"}}}`),
			create("resourcequota pay-web/none", `{spec: {hard: {resourcequotas: "1"}}}`),
			create("resourcequota pay-web/none-*", `{spec: {hard: {count/limitranges: "0"}}}`),
			create("resourcequota pay-web/none", `{spec: {hard: {count/networkpolicies.networking.k8s.io: "0"}}}`),
			merge("resourcequota pay-quota/own", `{spec: {hard: {count/resourcequotas: "1"}}}`)),
		allowed(bob, merge("resourcequota pay-quota/own", `{spec: {hard: {count/pods: "7"}}}`)),
		allowed(carol, create("resourcequota plain/none", `{spec: {hard: {count/resourcequotas: "1"}}}`)),
		allowed(clara, create("resourcequota victim/none", `{spec: {hard: {count/resourcequotas: "5"}}}`)),
	}},
	{name: "SEC-C36 bob sets resourcequotas or count/resourcequotas in status.hard of his quota: refused, `may not limit`; only keys of " +
		"its spec.hard: allowed", tries: []try{
		refused(bob, "may not limit",
			merge("resourcequota pay-web/counted", `{status: {hard: {count/resourcequotas: "1"}, used: {count/resourcequotas: "1"}}}`, "status"),
			merge("resourcequota pay-web/counted", `{status: {hard: {resourcequotas: "1", count/pods: "5"}, used: {resourcequotas: "1"}}}`,
				"status")),
		allowed(bob, merge("resourcequota pay-web/counted", `{status: {hard: {count/pods: "5"}, used: {count/pods: "1"}}}`, "status")),
	}},
}

const forgedCondition = `{status: {conditions: [{type: Odd, status: "True", reason: Odd, message: odd, lastTransitionTime: ` +
	`"2026-01-01T00:00:00Z"}]}}`
