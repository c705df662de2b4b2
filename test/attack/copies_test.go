package attack_test

import (
	"context"
	"strings"

	. "github.com/onsi/gomega"
)

const (
	isCopy   = "s is a copy of payments/s; change the source instead"
	ourKeys  = "keys of $D belong to the operator"
	operator = "is written by the operator alone; change its LNamespace or ResourceDistribution instead"
)

// meddling tries to change, unmark and delete a copy; all is refused.
func meddling(by actor) try {
	return refused(by, isCopy,
		merge("secret pay-web/s", `{stringData: {key: two}}`),
		put("secret pay-web/s", `{stringData: {key: two}}`),
		merge("secret pay-web/s", ours("$D/inherited-from", "null")),
		merge("secret pay-web/s", ours("$D/inherited-from", "victim")),
		remove("secret pay-web/s"))
}

// taking is a patch that marks a user's object as a copy; freeing is a patch that removes this mark.
const (
	taking = `{metadata: {labels: {$D/inherited-from: victim}, annotations: {$D/source-hash: ` +
		`"create:0000000000000000:00000000000000000000000000000000"}}}`
	freeing = `{metadata: {labels: {$D/inherited-from: null}, annotations: {$D/source-hash: null}}}`
)

var copyRows = []row{
	{name: "SEC-C1 alice, bob and cl edit the copy pay-web/s, change or remove its inherited-from, or delete it: refused, `s is a copy " +
		"of payments/s; change the source instead`", tries: []try{meddling(alice), meddling(bob), meddling(clara)}},
	{name: "SEC-C2 alice changes a copy by server-side apply with --force-conflicts, or deletes it by deletecollection: both refused, " +
		"and the copy stays", tries: []try{
		refused(alice, isCopy,
			kubectl("secret pay-web/s", `{apiVersion: v1, kind: Secret, metadata: {namespace: pay-web, name: s}, stringData: {key: two}}`,
				"apply", "--server-side", "--force-conflicts", "-f", "-")),
		refused(alice, isCopy, sweep("secret pay-swept/*")),
	}, then: func(ctx context.Context, f *fixture) {
		Expect(f.look(ctx, "secret pay-swept/s")).NotTo(BeNil())
	}},
	{name: "SEC-C3 alice creates a ConfigMap with inherited-from, by name and generateName, or labels her own: refused, `keys of " +
		"tenancy.warren.dev belong to the operator`; SEC-C3 the same with the labels access and distributed-by is refused, too", tries: []try{
		refused(alice, ourKeys,
			create("configmap pay-web/forged", ours("$D/inherited-from", "victim")),
			create("configmap pay-web/forged-*", ours("$D/inherited-from", "victim")),
			merge("configmap pay-web/own", ours("$D/inherited-from", "victim")),
			create("configmap pay-web/forged", ours("$D/access", "users")),
			merge("configmap pay-web/own", ours("$D/access", "users")),
			create("configmap pay-web/forged", ours("$D/distributed-by", "news")),
			merge("configmap pay-web/own", ours("$D/distributed-by", "news"))),
	}},
	{name: "SEC-C4 in payments and pay-web, alice deletes RoleBinding warren:users, and bob adds himself to warren:sudoers or removes " +
		"its label access: all refused", tries: []try{
		refused(alice, "", remove("rolebinding payments/warren:users"), remove("rolebinding pay-web/warren:users")),
		refused(bob, "",
			merge("rolebinding payments/warren:sudoers", bindingTo("cluster-admin", "bob")),
			merge("rolebinding pay-web/warren:sudoers", bindingTo("cluster-admin", "bob")),
			merge("rolebinding payments/warren:sudoers", ours("$D/access", "null")),
			merge("rolebinding pay-web/warren:sudoers", ours("$D/access", "null"))),
	}},
	{name: "SEC-C5 alice creates RoleBinding warren:x in pay-web: refused, `names that start with warren:`; x there: allowed; SEC-C5 " +
		"carol creates RoleBinding warren:x in plain: allowed; warren:operator: refused, `is the operator's in every namespace`", tries: []try{
		refused(alice, "names that start with warren:",
			create("rolebinding pay-web/warren:x", bindingTo("view", "dave")),
			create("rolebinding pay-web/warren:x*", bindingTo("view", "dave"))),
		allowed(alice, create("rolebinding pay-web/x", bindingTo("view", "dave"))),
		allowed(carol, create("rolebinding plain/warren:x", bindingTo("view", "dave"))),
		refused(carol, "the name warren:operator is the operator's in every namespace", create("rolebinding plain/warren:operator",
			bindingTo("view", "dave"))),
	}},
	{name: "SEC-C6 bob changes a label, a finalizer or the status alone of a copy through resourcequotas/status: all refused", tries: []try{
		refused(bob, "quota is a copy of payments/quota",
			merge("resourcequota pay-quota/quota", ours("x", `"y"`), "status"),
			merge("resourcequota pay-quota/quota", `{metadata: {finalizers: [example.com/hold]}}`, "status"),
			merge("resourcequota pay-quota/quota", `{status: {used: {count/configmaps: "0"}}}`, "status")),
	}},
	{name: "SEC-C7 alice edits the data of a copy of mode create, and deletes it: both allowed; changes or removes its source-hash: " +
		"refused", tries: []try{
		refused(alice, "seed is a copy of payments/seed",
			merge("configmap pay-seed/seed", notes("$D/source-hash", "create:0:0")),
			merge("configmap pay-seed/seed", notes("$D/source-hash", "null"))),
		allowed(alice, merge("configmap pay-seed/seed", `{data: {key: two}}`), remove("configmap pay-seed/seed")),
	}},
	{name: "SEC-C8 alice sets propagate=update on a copy: refused; propagate=yes on her own object: 422, `must be create, update or " +
		"none`; propagate=update or select there: allowed", tries: []try{
		refused(alice, isCopy, merge("secret pay-web/s", ours("$D/propagate", "update"))),
		invalid(alice, "must be create, update or none", merge("configmap pay-web/mode", ours("$D/propagate", `"yes"`))),
		allowed(alice,
			merge("configmap pay-web/mode", ours("$D/propagate", "update")),
			merge("configmap pay-web/mode", notes("$D/select", "tier=web"))),
	}},
	{name: "SEC-C9 carol edits and deletes a distributed copy: allowed; removes distributed-by: refused, `belong to the operator`; adds " +
		"an owner: refused, `written by the operator alone`; SEC-C9 carol edits or deletes a locked one: refused, `written by the operator " +
		"alone`; removes locked: refused, `belong to the operator`; cl edits it: allowed", tries: []try{
		refused(carol, "belong to the operator", merge("configmap plain/kept", ours("$D/distributed-by", "null"))),
		refused(carol, operator, merge("configmap plain/kept", `{metadata: {ownerReferences: [`+dangling+`]}}`)),
		allowed(carol, merge("configmap plain/free", `{data: {key: two}}`), remove("configmap plain/free")),
		refused(carol, operator, merge("configmap plain/locked", `{data: {key: two}}`), remove("configmap plain/locked")),
		refused(carol, "belong to the operator", merge("configmap plain/locked", notes("$D/locked", "null"))),
		allowed(clara, merge("configmap plain/locked-too", `{data: {key: two}}`)),
	}},
	{name: "SEC-C10 a ServiceAccount of kube-system with all rights creates a Secret with inherited-from, or edits the content of a " +
		"copy: refused; adds a finalizer to a copied Service: allowed", tries: []try{
		refused(robot, ourKeys, create("secret pay-web/forged", ours("$D/inherited-from", "victim"))),
		refused(robot, isCopy, merge("secret pay-web/s", `{stringData: {key: two}}`)),
		refused(robot, "web is a copy of payments/web", merge("service pay-service/web", `{spec: {selector: {app: evil}}}`)),
		allowed(robot, merge("service pay-service/web", `{metadata: {finalizers: [example.com/hold]}}`)),
	}},
	{name: "SEC-C11 the garbage collector deletes an access RoleBinding and a distributed copy whose owner does not " +
		"exist, within 2 s", tries: []try{
		allowed(op,
			create("rolebinding victim/warren:stray", `{metadata: {labels: {$D/access: users}, ownerReferences: [`+dangling+`]}, `+bindingTo("view",
				"dave")[1:])),
		allowed(clara,
			create("configmap plain/stray", `{metadata: {labels: {$D/distributed-by: news}, ownerReferences: [`+dangling+`]}}`)),
	}, then: func(ctx context.Context, f *fixture) {
		f.gone(ctx, "rolebinding victim/warren:stray")
		f.gone(ctx, "configmap plain/stray")
	}},
	{name: "SEC-C34 alice or bob sets inherited-from and source-hash in mode create on a ConfigMap of the tree: refused; cl sets them on " +
		"carol's, and removes them again: allowed; SEC-C34 cl sets them in mode update, sets inherited-from beside access, creates an " +
		"object that has them, or changes or removes them on a copy: all refused", tries: []try{
		refused(alice, ourKeys, merge("configmap pay-web/own", taking)),
		refused(bob, ourKeys, merge("configmap pay-web/own", taking)),
		refused(clara, ourKeys,
			merge("configmap plain/handed", strings.Replace(taking, "create:", "update:", 1)),
			merge("configmap plain/handed", `{metadata: {labels: {$D/inherited-from: victim, $D/access: users}}}`),
			create("configmap plain/forged", taking)),
		refused(clara, isCopy, merge("secret pay-web/s", freeing), merge("secret pay-web/s", taking)),
		allowed(clara, merge("configmap plain/handed", taking), merge("configmap plain/handed", freeing)),
	}},
	{name: "SEC-C35 bob deletes a copy that op wrote without source-hash: refused; cl deletes it: allowed; cl deletes a copy that was " +
		"written from a source: refused", tries: []try{
		refused(bob, "forged-by-op is a copy of victim/forged-by-op", remove("configmap pay-web/forged-by-op")),
		refused(clara, isCopy, remove("secret pay-web/s")),
		allowed(clara, remove("configmap pay-web/forged-by-op")),
	}},
	{name: "SEC-C13 a copied Service gets its EndpointSlice", then: func(ctx context.Context, f *fixture) {
		Eventually(ctx, func(ctx context.Context) any { return f.look(ctx, "endpointslice pay-web/web-*") }).
			Should(HaveLen(1))
	}},
}
