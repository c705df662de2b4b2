package attack_test

import "net/http"

// What somebody with a stolen token of the operator tries with its right to revoke access in protected namespaces, and on objects that
// look like the operator's own.

var withdrawalRows = []row{
	{name: "SEC-O39 in walled, op adds or replaces a subject of a copy, or changes its mark, another label, an annotation, an owner or a " +
		"finalizer: refused, `may not write in namespace`; SEC-O39 so is a change or deletion of a RoleBinding without both marks or of a " +
		"marked ConfigMap, and each new object; the API server refuses another roleRef; SEC-O39 op removes some or all subjects of a copy, " +
		"or deletes it: allowed", tries: []try{
		refused(op, "the operator may not write in namespace walled",
			put("rolebinding walled/kept", `{subjects: [`+user("alice")+`, `+user("dave")+`, `+user("mallory")+`]}`),
			put("rolebinding walled/kept", `{subjects: [`+user("mallory")+`]}`),
			put("rolebinding walled/kept", `{subjects: [`+group("alice")+`]}`),
			put("rolebinding walled/kept", `{subjects: [{kind: ServiceAccount, namespace: walled, name: alice}]}`),
			put("rolebinding walled/kept", ours("$D/inherited-from", "null")),
			put("rolebinding walled/kept", ours("$D/access", "null")),
			put("rolebinding walled/kept", ours("$D/inherited-from", "victim")),
			put("rolebinding walled/kept", ours("x", `"y"`)),
			put("rolebinding walled/kept", notes("$D/lnamespace-uid", "other")),
			put("rolebinding walled/kept", `{metadata: {finalizers: [example.com/held]}}`),
			put("rolebinding walled/kept", `{metadata: {ownerReferences: [`+dangling+`]}}`),
			put("rolebinding walled/theirs", `{subjects: []}`),
			put("rolebinding walled/theirs", `{metadata: {labels: {$D/access: users, $D/inherited-from: payments}}}`),
			remove("rolebinding walled/theirs"),
			put("rolebinding walled/copied", `{subjects: []}`),
			remove("rolebinding walled/copied"),
			put("configmap walled/copied", `{data: {key: two}}`),
			remove("configmap walled/copied"),
			create("rolebinding walled/new", accessCopy("alice")),
			create("role walled/new", marked("inherited-from: payments", `{rules: []}`)),
			create("configmap walled/new", `{metadata: {labels: {$D/inherited-from: payments}}}`)),
		{op, []request{put("rolebinding walled/kept", `{roleRef: {name: cluster-admin}}`)}, "cannot change roleRef", "",
			http.StatusUnprocessableEntity},
		allowed(op,
			put("rolebinding walled/shrunk", `{metadata: {annotations: {$D/source-hash: "update:0:2"}}, subjects: [`+user("dave")+`]}`),
			put("rolebinding walled/shrunk", `{subjects: []}`),
			remove("rolebinding walled/shrunk"),
			remove("rolebinding walled/withdrawn")),
	}},
	{name: "SEC-O40 op labels a user's ConfigMap that has source-hash but no mark with inherited-from, or deletes it, in a tree or " +
		"outside: refused, `only what it wrote`", tries: []try{
		refused(op, "only what it wrote",
			put("configmap pay-web/exported", ours("$D/inherited-from", "payments")),
			remove("configmap pay-web/exported"),
			remove("configmap plain/exported")),
	}},
}
