package attack_test

import "context"

var peaceRows = []row{
	{name: "SEC-P1 without webhooks, cl labels a sub-namespace, moves it by label parent, and deletes it: all allowed; SEC-P1 carol " +
		"labels a plain namespace, adds and removes finalizers, sets enforce=privileged, and deletes it: all allowed", tries: []try{
		allowed(clara,
			merge("namespace pay-moved", ours("x", `"y"`)),
			merge("namespace pay-moved", ours("$D/parent", "victim")),
			remove("namespace pay-moved")),
		allowed(carol,
			merge("namespace carols", ours("x", `"y"`)),
			merge("namespace carols", privileged),
			merge("namespace carols", `{metadata: {finalizers: [example.com/hold]}}`),
			merge("namespace carols", `{metadata: {finalizers: null}}`),
			remove("namespace carols")),
	}, then: func(ctx context.Context, f *fixture) {
		f.gone(ctx, "namespace pay-moved")
		f.gone(ctx, "namespace carols")
	}},
	{name: "SEC-P2 the garbage collector adds finalizer foregroundDeletion to a sub-namespace: allowed", tries: []try{
		allowed(garbageCollector, jsonPatch("namespace pay-foreground", `[{op: add, path: /metadata/finalizers, value: [foregroundDeletion]}]`)),
	}},
	{name: "SEC-P3 with the operator stopped, a namespace with access objects and copies, some of mode create, that op or cl deletes is " +
		"gone within 20 s", tries: []try{
		allowed(op, remove("namespace pay-ended")),
		allowed(clara, remove("namespace pay-closed")),
	}, then: func(ctx context.Context, f *fixture) {
		f.gone(ctx, "namespace pay-ended")
		f.gone(ctx, "namespace pay-closed")
	}},
}
