package attack_test

import "context"

const (
	mayNot   = " only by someone who may update every LNamespace"
	template = `{spec: {template: tmpl}}`
)

var limitRows = []row{
	{name: "SEC-L1 mia raises limits, sets `limits: null`, changes template, billing.costCenter, billing.labels or annotation creator of " +
		"LNamespace payments: refused, each answer names the field", tries: []try{
		refused(mia, "spec.limits may be set"+mayNot,
			merge("lnamespace payments", `{spec: {limits: {subNamespaces: 5000}}}`),
			merge("lnamespace payments", `{spec: {limits: {copies: 5000}}}`),
			merge("lnamespace payments", `{spec: {limits: {bytes: 5000}}}`),
			merge("lnamespace payments", `{spec: {limits: null}}`)),
		refused(mia, "spec.template may be set"+mayNot, merge("lnamespace payments", template)),
		refused(mia, "spec.billing may be changed"+mayNot,
			merge("lnamespace payments", `{spec: {billing: {costCenter: "0815"}}}`),
			merge("lnamespace payments", `{spec: {billing: {labels: {product: other}}}}`)),
		refused(mia, "annotation $D/creator must be the name of the user", merge("lnamespace payments", notes("$D/creator", "mia"))),
	}},
	{name: "SEC-L2 mia changes users and allowCascadingDeletion of her LNamespace: allowed; changes its status, or deletes it: refused " +
		"by RBAC", tries: []try{
		allowed(mia,
			merge("lnamespace orders", `{spec: {users: [{kind: User, name: dave}]}}`),
			merge("lnamespace orders", `{spec: {allowCascadingDeletion: true}}`)),
		denied(mia, merge("lnamespace orders", `{status: {namespace: victim}}`, "status"), remove("lnamespace orders")),
	}},
	{name: "SEC-L3 mia gives LNamespace payments an owner that does not exist, or changes finalizers: refused, `owners and finalizers`; " +
		"60 s later the tenant is unchanged", tries: []try{
		refused(mia, "owners and finalizers",
			merge("lnamespace payments", `{metadata: {ownerReferences: [`+dangling+`]}}`),
			merge("lnamespace payments", `{metadata: {finalizers: [example.com/hold]}}`),
			merge("lnamespace payments", `{metadata: {finalizers: null}}`)),
	}, then: func(ctx context.Context, f *fixture) {
		f.stays(ctx, "lnamespace payments")
		f.stays(ctx, "namespace payments")
	}},
	{name: "SEC-L4 bob, with sudo, changes limits of payments: refused", tries: []try{
		refused(bob, "spec.limits may be set"+mayNot, merge("lnamespace payments", `{spec: {limits: {subNamespaces: 5000}}}`)),
	}},
	{name: "SEC-L5 a creator of an LNamespace sets limits, template or finalizers: refused; billing: allowed by the policies, so that " +
		"the webhook decides", tries: []try{
		refused(creator, "spec.limits may be set"+mayNot, create("lnamespace greedy", `{spec: {limits: {subNamespaces: 5000}}}`)),
		refused(creator, "spec.template may be set"+mayNot, create("lnamespace greedy", template)),
		refused(creator, "owners and finalizers", create("lnamespace greedy", `{metadata: {finalizers: [example.com/hold]}}`)),
		refused(creator, "annotation $D/creator must be the name of the user who creates the LNamespace",
			create("lnamespace forged", notes("$D/creator", "clara"))),
		allowed(creator, create("lnamespace signed", notes("$D/creator", "creator"))),
		allowed(creator, create("lnamespace billed", `{metadata: {annotations: {$D/creator: creator}}, spec: {billing: {costCenter: "0815"}}}`)),
	}},
	{name: "SEC-L7 a creator names another user in annotation creator, or leaves it out: refused, `must be the name of the user who " +
		"creates the LNamespace: set it to` and their name; SEC-L7 a creator names themselves there, and a cluster admin another user or " +
		"none: allowed", tries: []try{
		refused(creator, "must be the name of the user who creates the LNamespace: set it to creator",
			create("lnamespace greedy", notes("$D/creator", "carol")), create("lnamespace greedy", ``)),
		allowed(creator, create("lnamespace counted", notes("$D/creator", "creator"))),
		allowed(admin, create("lnamespace restored", notes("$D/creator", "carol")), create("lnamespace admins", ``)),
	}},
}
