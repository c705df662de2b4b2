package plugin_test

import "testing"

func TestRefusalsAboutNamespaces(t *testing.T) {
	refuse(t, map[string]struct{ line, want string }{
		"SUB-X6 a wrong type is an error": {"kubectl-warren set-type x foo", `invalid type "foo": must be root, template or none`},
		"a type of nothing": {"kubectl-warren set-type x",
			"name a namespace and root, template or none, not 1: kubectl warren set-type NAMESPACE TYPE"},
		"a type of a wrong name": {"kubectl-warren set-type x.y root", `invalid namespace name "x.y"` + noName},
		"describe nothing":       {"kubectl-warren describe", "name one namespace, not 0: kubectl warren describe NAMESPACE"},
		"describe two":           {"kubectl-warren describe a b", "name one namespace, not 2: kubectl warren describe NAMESPACE"},
		"describe with -n":       {"kubectl-warren describe a -n b", ignored + "leave it out"},
		"describe a wrong name":  {"kubectl-warren describe A", `invalid namespace name "A"` + noName},
		"describe in a wrong form": {"kubectl-warren describe a -o wide",
			`invalid argument "wide" for "-o, --output" flag: must be json, yaml or name`},
		"no such command": {"kubectl-warren ns describe", `kubectl warren ns takes no "describe": to show one namespace or to change it, ` +
			`use kubectl warren describe, set, set-type or mark`},
		"set what template": {"kubectl-warren template set a", "name a namespace and a template, not 1: kubectl warren template set " +
			"NAMESPACE TEMPLATE"},
		"set a wrong template": {"kubectl-warren template set a b/c", `invalid namespace name "b/c"` + noName},
		"unset two":            {"kubectl-warren template unset a b", "name one namespace, not 2: kubectl warren template unset NAMESPACE"},
		"templates with -n":    {"kubectl-warren template list -n a", ignored + "leave it out"},
		"a wrong template":     {"kubectl-warren template list A", `invalid namespace name "A"` + noName},
	})
}

func TestRefusalsOfTrace(t *testing.T) {
	refuse(t, map[string]struct{ line, want string }{
		"trace nothing": {"kubectl-warren trace -n x", "name one object, not 0: kubectl warren trace KIND/NAME"},
		"trace a kind":  {"kubectl-warren trace secret -n x", `invalid object "secret": must be KIND/NAME, such as secret/registry`},
		"trace too much": {"kubectl-warren trace secret/x/y -n x",
			`invalid object "secret/x/y": must be KIND/NAME, such as secret/registry`},
		"trace in a wrong place": {"kubectl-warren trace secret/x -n x.y", `invalid namespace name "x.y"` + noName},
	})
}
