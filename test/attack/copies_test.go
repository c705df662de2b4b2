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
	{name: "SEC-C1 nobody edits, frees or deletes a copy", tries: []try{meddling(alice), meddling(bob), meddling(clara)}},
	{name: "SEC-C2 nor by server-side apply, nor with all others", tries: []try{
		refused(alice, isCopy,
			kubectl("secret pay-web/s", `{apiVersion: v1, kind: Secret, metadata: {namespace: pay-web, name: s}, stringData: {key: two}}`,
				"apply", "--server-side", "--force-conflicts", "-f", "-")),
		refused(alice, isCopy, sweep("secret pay-swept/*")),
	}, then: func(ctx context.Context, f *fixture) {
		Expect(f.look(ctx, "secret pay-swept/s")).NotTo(BeNil())
	}},
	{name: "SEC-C3 a tenant forges a copy, an access object, a distributed copy", tries: []try{
		refused(alice, ourKeys,
			create("configmap pay-web/forged", ours("$D/inherited-from", "victim")),
			create("configmap pay-web/forged-*", ours("$D/inherited-from", "victim")),
			merge("configmap pay-web/own", ours("$D/inherited-from", "victim")),
			create("configmap pay-web/forged", ours("$D/access", "users")),
			merge("configmap pay-web/own", ours("$D/access", "users")),
			create("configmap pay-web/forged", ours("$D/distributed-by", "news")),
			merge("configmap pay-web/own", ours("$D/distributed-by", "news"))),
	}},
	{name: "SEC-C4 tenants reach for the bindings of their tree", tries: []try{
		refused(alice, "", remove("rolebinding payments/warren:users"), remove("rolebinding pay-web/warren:users")),
		refused(bob, "",
			merge("rolebinding payments/warren:sudoers", bindingTo("cluster-admin", "bob")),
			merge("rolebinding pay-web/warren:sudoers", bindingTo("cluster-admin", "bob")),
			merge("rolebinding payments/warren:sudoers", ours("$D/access", "null")),
			merge("rolebinding pay-web/warren:sudoers", ours("$D/access", "null"))),
	}},
	{name: "SEC-C5 names of access objects are the operator's in managed namespaces", tries: []try{
		refused(alice, "names that start with warren:",
			create("rolebinding pay-web/warren:x", bindingTo("view", "dave")),
			create("rolebinding pay-web/warren:x*", bindingTo("view", "dave"))),
		allowed(alice, create("rolebinding pay-web/x", bindingTo("view", "dave"))),
		allowed(carol, create("rolebinding plain/warren:x", bindingTo("view", "dave"))),
		refused(carol, "the name warren:operator is the operator's in every namespace", create("rolebinding plain/warren:operator",
			bindingTo("view", "dave"))),
	}},
	{name: "SEC-C6 a sudoer goes by the status of a copy", tries: []try{
		refused(bob, "quota is a copy of payments/quota",
			merge("resourcequota pay-quota/quota", ours("x", `"y"`), "status"),
			merge("resourcequota pay-quota/quota", `{metadata: {finalizers: [example.com/hold]}}`, "status"),
			merge("resourcequota pay-quota/quota", `{status: {used: {count/configmaps: "0"}}}`, "status")),
	}},
	{name: "SEC-C7 a copy in mode create is its namespace's, but for its mark", tries: []try{
		refused(alice, "seed is a copy of payments/seed",
			merge("configmap pay-seed/seed", notes("$D/source-hash", "create:0:0")),
			merge("configmap pay-seed/seed", notes("$D/source-hash", "null"))),
		allowed(alice, merge("configmap pay-seed/seed", `{data: {key: two}}`), remove("configmap pay-seed/seed")),
	}},
	{name: "SEC-C8 a tenant propagates what is its own, in a mode that exists", tries: []try{
		refused(alice, isCopy, merge("secret pay-web/s", ours("$D/propagate", "update"))),
		invalid(alice, "must be create, update or none", merge("configmap pay-web/mode", ours("$D/propagate", `"yes"`))),
		allowed(alice,
			merge("configmap pay-web/mode", ours("$D/propagate", "update")),
			merge("configmap pay-web/mode", notes("$D/select", "tier=web"))),
	}},
	{name: "SEC-C9 a distributed copy may be edited and deleted, a locked one by a cluster admin alone", tries: []try{
		refused(carol, "belong to the operator", merge("configmap plain/kept", ours("$D/distributed-by", "null"))),
		refused(carol, operator, merge("configmap plain/kept", `{metadata: {ownerReferences: [`+dangling+`]}}`)),
		allowed(carol, merge("configmap plain/free", `{data: {key: two}}`), remove("configmap plain/free")),
		refused(carol, operator, merge("configmap plain/locked", `{data: {key: two}}`), remove("configmap plain/locked")),
		refused(carol, "belong to the operator", merge("configmap plain/locked", notes("$D/locked", "null"))),
		allowed(clara, merge("configmap plain/locked-too", `{data: {key: two}}`)),
	}},
	{name: "SEC-C10 a ServiceAccount of kube-system touches what isn't content", tries: []try{
		refused(robot, ourKeys, create("secret pay-web/forged", ours("$D/inherited-from", "victim"))),
		refused(robot, isCopy, merge("secret pay-web/s", `{stringData: {key: two}}`)),
		refused(robot, "web is a copy of payments/web", merge("service pay-service/web", `{spec: {selector: {app: evil}}}`)),
		allowed(robot, merge("service pay-service/web", `{metadata: {finalizers: [example.com/hold]}}`)),
	}},
	{name: "SEC-C11 the garbage collector takes what has lost its owner", tries: []try{
		allowed(op,
			create("rolebinding victim/warren:stray", `{metadata: {labels: {$D/access: users}, ownerReferences: [`+dangling+`]}, `+bindingTo("view",
				"dave")[1:])),
		allowed(clara,
			create("configmap plain/stray", `{metadata: {labels: {$D/distributed-by: news}, ownerReferences: [`+dangling+`]}}`)),
	}, then: func(ctx context.Context, f *fixture) {
		f.gone(ctx, "rolebinding victim/warren:stray")
		f.gone(ctx, "configmap plain/stray")
	}},
	{name: "SEC-C34 a cluster admin hands over what another operator wrote, in mode create, and takes it back", tries: []try{
		refused(alice, ourKeys, merge("configmap pay-web/own", taking)),
		refused(bob, ourKeys, merge("configmap pay-web/own", taking)),
		refused(clara, ourKeys,
			merge("configmap plain/handed", strings.Replace(taking, "create:", "update:", 1)),
			merge("configmap plain/handed", `{metadata: {labels: {$D/inherited-from: victim, $D/access: users}}}`),
			create("configmap plain/forged", taking)),
		refused(clara, isCopy, merge("secret pay-web/s", freeing), merge("secret pay-web/s", taking)),
		allowed(clara, merge("configmap plain/handed", taking), merge("configmap plain/handed", freeing)),
	}},
	{name: "SEC-C35 a cluster admin deletes a forged copy", tries: []try{
		refused(bob, "forged-by-op is a copy of victim/forged-by-op", remove("configmap pay-web/forged-by-op")),
		refused(clara, isCopy, remove("secret pay-web/s")),
		allowed(clara, remove("configmap pay-web/forged-by-op")),
	}},
	{name: "SEC-C13 a copied Service gets its EndpointSlice", then: func(ctx context.Context, f *fixture) {
		Eventually(ctx, func(ctx context.Context) any { return f.look(ctx, "endpointslice pay-web/web-*") }).
			Should(HaveLen(1))
	}},
}
