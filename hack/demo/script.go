package main

import "time"

// scene is a part of the story: what is shown, and the commands that show it.
type scene struct {
	name  string // for the closing line
	story string
	steps []step
}

// step is one command of one user and what it must answer.
type step struct {
	user    string
	command string // as one would type it; arguments with spaces in single quotes
	want    want
}

// want is an expected answer: exit code 0 or not, and fragments of what is printed.
type want struct {
	refused bool
	has     []string
	hasNot  []string
	// within: the answer may take that long, for the operator acts when it can. 0: the first answer counts.
	within time.Duration
	// timed: the time it took is printed, counted from the end of the command before.
	timed bool
}

// soon is how long the operator may take, with plenty of room for a busy machine.
const soon = 10 * time.Second

func prints(fragments ...string) want  { return want{has: fragments} }
func refuses(fragments ...string) want { return want{refused: true, has: fragments} }

func (w want) soon() want { w.within = soon; return w }
func (w want) without(fragments ...string) want {
	w.hasNot = append(w.hasNot, fragments...)
	return w
}

const (
	sudo     = " --as=bob --as-group=payments-sudoers"
	sudoShop = " --as=bob --as-group=shop-sudoers"
	value    = " -o jsonpath={.data.password}"
)

// script is the main job of a tenancy operator, from the first tenant to the last copy.
func script() []scene {
	return []scene{tenants(), tree(), propagation(), hierarchy(), strangers(), raised(), attacks(), revoked(), sharedPair(), updates(), removal()}
}

func tenants() scene {
	return scene{
		name: "tenants", story: "Two tenants, each made by its manager. Nobody asks a cluster admin.",
		steps: []step{
			{"mia", "create -f hack/demo/payments.yaml", prints("payments created")},
			{"carol", "create -f hack/demo/shop.yaml", prints("shop created")},
			{"mia", "wait lns/payments lns/shop --for=condition=Ready --timeout=10s", prints("payments condition met", "shop condition met")},
			{"mia", "get lns", prints("payments", "shop", "True")},
			{"dave", "create secret generic till -n shop --from-literal=pin=1234", prints("created").soon()},
		},
	}
}

func tree() scene {
	return scene{
		name: "tree", story: "alice, a user of payments, grows the tree by herself.",
		steps: []step{
			{"alice", "create -f hack/demo/pay-web.yaml", prints("pay-web created").soon()},
			{"alice", "wait subns/pay-web -n payments --for=condition=Ready --timeout=10s", prints("condition met")},
			{"alice", "create -f hack/demo/pay-db.yaml", prints("pay-db created").soon()},
			{"alice", "wait subns/pay-db -n pay-web --for=condition=Ready --timeout=10s", prints("condition met")},
			{"alice", "warren tree payments", prints("payments", "pay-web", "pay-db")},
		},
	}
}

func propagation() scene {
	return scene{
		name: "propagation", story: "A Secret with the label propagate reaches the whole tree.",
		steps: []step{
			{"alice", "create -f hack/demo/database.yaml", prints("database created")},
			{"alice", "get secret database -n pay-web" + value, prints("Zmlyc3Q=").soon()},
			{"alice", "get secret database -n pay-db" + value, prints("Zmlyc3Q=").soon()},
			{"alice", "warren trace secret/database -n pay-db", prints("payments -> pay-web -> pay-db", "update")},
			{"alice", "warren describe pay-db", prints("sub-namespace", "payments", "database")},
		},
	}
}

func hierarchy() scene {
	return scene{
		name: "hierarchy", story: "alice says what her tree must have, and a namespace from elsewhere can't be placed in it by its owner.",
		steps: []step{
			{"alice", "create -f hack/demo/hierarchy.yaml", prints("hierarchy created")},
			{"alice", "wait hier/hierarchy -n payments --for=condition=ChildrenReady --timeout=10s", prints("condition met")},
			{"alice", "get secret database -n pay-ledger" + value, prints("Zmlyc3Q=").soon()},
			{"admin", "create namespace legacy", prints("created")},
			{"admin", "create rolebinding owner -n legacy --clusterrole=admin --user=carol", prints("created")},
			{"carol", "create -f hack/demo/legacy.yaml", refuses(`needs update on hierarchyconfigurations in namespace "payments" (proposed parent)`).soon()},
			{"admin", "create -f hack/demo/legacy.yaml", prints("hierarchy created")},
			{"admin", "wait hier/hierarchy -n legacy --for=condition=Ready --timeout=10s", prints("condition met")},
			{"alice", "get secret database -n legacy" + value, prints("Zmlyc3Q=").soon()},
		},
	}
}

func strangers() scene {
	return scene{
		name: "strangers", story: "alice's rights end where her tenant ends, and she can't be somebody else.",
		steps: []step{
			{"alice", "get secret till -n shop", refuses("forbidden")},
			{"alice", "get secrets -n payments" + sudo, refuses("cannot impersonate")},
		},
	}
}

func raised() scene {
	return scene{
		name: "sudo", story: "bob is a sudoer of both tenants: without sudo he may not, with it he may, in that one tenant.",
		steps: []step{
			{"bob", "get secrets -n pay-db", refuses("forbidden")},
			{"bob", "get secrets -n pay-db" + sudo, prints("database").soon()},
			{"bob", "sudo --reason 'INC-42: what is in there?' get secrets -n pay-db", prints("database")},
			{"bob", "get secrets -n shop" + sudo, refuses("forbidden")},
			{"bob", "get secrets -n shop" + sudoShop, prints("till").soon()},
		},
	}
}

// operator is the operator's own account: what a thief of its token may do.
const operator = "system:serviceaccount:warren-system:warren-controller-manager"

func attacks() scene {
	return scene{
		name: "attacks", story: "Four attacks. Each is refused inside the API server, by a policy, also while the operator is down.",
		steps: []step{
			{"bob", "label namespace pay-web pod-security.kubernetes.io/enforce=privileged" + sudo,
				refuses("belongs to a tenant", "pod-security.kubernetes.io/enforce")},
			{"alice", `patch secret database -n pay-web -p '{"stringData":{"password":"mine"}}'`,
				refuses("database is a copy of payments/database; change the source instead")},
			{"admin", "create namespace carols", prints("created")},
			{"admin", "create rolebinding owner -n carols --clusterrole=cluster-admin --user=carol", prints("created")},
			{"carol", "label namespace carols tenancy.warren.dev/parent=payments",
				refuses("only the operator and cluster administrators may change these keys", "tenancy.warren.dev/parent").soon()},
			{"admin", "create clusterrolebinding thief --clusterrole=cluster-admin --user=mallory --as=" + operator,
				refuses("the operator may not write ClusterRoleBinding thief")},
		},
	}
}

func revoked() scene {
	gone := want{refused: true, has: []string{"cannot impersonate"}, within: 5 * time.Second, timed: true}
	return scene{
		name: "revocation", story: "mia takes bob off her list: refused within a second, while his sudo in shop goes on.",
		steps: []step{
			{"mia", `patch lns payments --type=merge -p '{"spec":{"sudoers":[]}}'`, prints("patched")},
			{"bob", "get secrets -n pay-db" + sudo, gone},
			{"bob", "get secrets -n shop" + sudoShop, prints("till")},
			{"admin", "get clusterrole,clusterrolebinding warren:self:bob -o name", prints("clusterrole.", "clusterrolebinding.")},
		},
	}
}

func sharedPair() scene {
	return scene{
		name: "shared pair", story: "The pair that lets bob be bob was shared by both tenants. carol lets go as well: it disappears.",
		steps: []step{
			{"carol", `patch lns shop --type=merge -p '{"spec":{"sudoers":[]}}'`, prints("patched")},
			{"bob", "get secrets -n shop" + sudoShop, refuses("cannot impersonate").soon()},
			{"admin", "get clusterrole warren:self:bob", refuses("not found").soon()},
			{"admin", "get clusterrolebinding warren:self:bob", refuses("not found").soon()},
		},
	}
}

func updates() scene {
	return scene{
		name: "copies", story: "The Secret changes, then goes: so do its copies.",
		steps: []step{
			{"alice", `patch secret database -n payments -p '{"stringData":{"password":"second"}}'`, prints("patched")},
			{"alice", "get secret database -n pay-web" + value, prints("c2Vjb25k").soon()},
			{"alice", "get secret database -n pay-db" + value, prints("c2Vjb25k").soon()},
			{"alice", "delete secret database -n payments", prints("deleted")},
			{"alice", "get secret database -n pay-web", refuses("not found").soon()},
			{"alice", "get secret database -n pay-db", refuses("not found").soon()},
		},
	}
}

func removal() scene {
	// The namespace controller waits 5 s before it empties a namespace.
	gone := want{refused: true, has: []string{"not found"}, within: 30 * time.Second}
	return scene{
		name: "removal", story: "Deleting a SubNamespace deletes its namespace, and nothing else.",
		steps: []step{
			{"alice", "delete subns pay-db -n pay-web", prints("deleted")},
			{"admin", "get namespace pay-db", gone},
			{"alice", "warren tree payments", prints("payments", "pay-web").without("pay-db")},
		},
	}
}
