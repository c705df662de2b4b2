package attack_test

// The share of a budget is a ResourceQuota that the operator alone writes.

const oneShare = `{spec: {hard: {pods: "1"}}}`

var budgetRows = []row{
	{name: "QUOTA-27 bob creates a ResourceQuota with the name of a share: refused, `is the share that the operator gives`", tries: []try{
		refused(bob, "is the share that the operator gives a namespace", create("resourcequota pay-web/hrq.tenancy.warren.dev", oneShare)),
	}},
	{name: "QUOTA-28 the operator's token creates a share with scopes, in kube-system or in a plain namespace, or a ResourceQuota of " +
		"another name: all refused", tries: []try{
		refused(op, "the operator may not write in namespace kube-system", create("resourcequota kube-system/hrq.tenancy.warren.dev", oneShare)),
		refused(op, "may write ResourceQuotas only in managed namespaces", create("resourcequota plain/hrq.tenancy.warren.dev", oneShare)),
		// With a mark, so that no other policy refuses it, too: which of two answers is not decided.
		refused(op, "may write only the ResourceQuota hrq.tenancy.warren.dev, and copies",
			create("resourcequota pay-web/other", `{metadata: {labels: {tenancy.warren.dev/access: x}}, spec: {hard: {pods: "1"}}}`)),
		refused(op, "has neither scopes nor owners nor finalizers",
			create("resourcequota pay-web/hrq.tenancy.warren.dev", `{spec: {hard: {pods: "1"}, scopes: [BestEffort]}}`)),
	}},
}
