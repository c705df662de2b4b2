package attack_test

import (
	"fmt"
	"net/http"
	"strings"
)

// many returns n items, made from a format with their number, with commas between them.
func many(n int, format string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(items, ", ")
}

// longOwner is an owner above the bound.
var longOwner = `{apiVersion: v1, kind: ConfigMap, name: ` + strings.Repeat("n", 1024) + `, uid: u}`

func labelled(n int) string { return `{metadata: {labels: {` + many(n, "l%d: x") + `}}}` }

// What users may put into the objects that the operator holds in memory, and into those that its policies judge.
var memoryRows = []row{
	{name: "SEC-X50 alice and mia set 65 labels, bob sets 33 finalizers, 17 owners or one of more than 1,024 characters: 422, with " +
		"field, size and bound; 64 labels: allowed; SEC-X50 on a SubNamespace that has 70 labels, bob changes the spec, removes a label, " +
		"and deletes it: allowed; adds a label: 422", tries: []try{
		invalid(alice, "metadata.labels has 65 labels", create("subnamespace payments/heavy", labelled(65))),
		invalid(mia, "metadata.labels has 65 labels", merge("lnamespace payments", labelled(65))),
		invalid(bob, "metadata.finalizers has 33 items",
			create("subnamespace payments/heavy", `{metadata: {finalizers: [`+many(33, "example.com/f%d")+`]}}`)),
		invalid(bob, "more than 1024 characters", create("subnamespace payments/heavy",
			`{metadata: {ownerReferences: [`+many(17, "{apiVersion: v1, kind: ConfigMap, name: gone, uid: u%d}")+`]}}`),
			create("subnamespace payments/heavy",
				`{metadata: {ownerReferences: [`+longOwner+`]}}`)),
		allowed(alice, create("subnamespace payments/light", labelled(64))),
		allowed(op, create("subnamespace payments/laden", labelled(70))), // stands for an object that was above the bound before
		allowed(bob, merge("subnamespace payments/laden", `{spec: {labels: {team: web}}}`),
			merge("subnamespace payments/laden", `{metadata: {labels: {l0: null}}}`)),
		{by: bob, requests: []request{merge("subnamespace payments/laden", `{metadata: {labels: {more: x}}}`)},
			refuser: "metadata.labels has 70 labels", code: http.StatusUnprocessableEntity},
		allowed(bob, remove("subnamespace payments/laden")),
	}},
	{name: "SEC-X51 bob writes to the status of a SubNamespace 17 conditions: 422, `at most 16 items`; a message of 4,097 characters: " +
		"422, `at most 4096 characters`", tries: []try{
		{by: bob, requests: []request{
			merge("subnamespace payments/pay-web", `{status: {conditions: [`+many(17, aCondition("c%d", "x"))+`]}}`, "status"),
		}, refuser: "must have at most 16 items", code: http.StatusUnprocessableEntity},
		{by: bob, requests: []request{
			merge("subnamespace payments/pay-web", `{status: {conditions: [`+aCondition("Ready", strings.Repeat("x", 4097))+`]}}`, "status"),
		}, refuser: "at most 4096 characters", code: http.StatusUnprocessableEntity},
	}},
	{name: "SEC-X54 alice binds 1,001 users: refused, `subjects has 1001 items`; 1,000 users: allowed; 1,000 groups whose names end in " +
		"-sudoers: refused, `is what sudoers become`", tries: []try{
		refused(alice, "subjects has 1001 items", create("rolebinding pay-web/crowd", binding("view", many(1001, user("u%d"))))),
		allowed(alice, create("rolebinding pay-web/many", binding("view", many(1000, user("u%d"))))),
		refused(alice, "subjects: Group 0-sudoers is what sudoers become",
			create("rolebinding pay-web/crowd", binding("view", many(1000, group("%d-sudoers"))))),
	}},
}

func aCondition(kind, message string) string {
	return `{type: ` + kind + `, status: "True", reason: Planted, message: "` + message + `", lastTransitionTime: "2026-01-01T00:00:00Z"}`
}
