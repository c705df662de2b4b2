package attack_test

import "context"

var peaceRows = []row{
	{name: "SEC-P1 a cluster admin does what they like with a tenant's namespace, and an owner with a plain one", tries: []try{
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
	{name: "SEC-P2 the garbage collector prepares a deletion in the foreground", tries: []try{
		allowed(garbageCollector, jsonPatch("namespace pay-foreground", `[{op: add, path: /metadata/finalizers, value: [foregroundDeletion]}]`)),
	}},
	{name: "SEC-P3 a namespace full of copies goes, whoever deletes it, with the operator stopped", tries: []try{
		allowed(op, remove("namespace pay-ended")),
		allowed(clara, remove("namespace pay-closed")),
	}, then: func(ctx context.Context, f *fixture) {
		f.gone(ctx, "namespace pay-ended")
		f.gone(ctx, "namespace pay-closed")
	}},
}
