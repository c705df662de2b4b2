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
	command string // as one would type it after kubectl, with arguments that have spaces in single quotes; for finance, SQL
	want    want
}

// want is an expected answer: exit code 0 or not, and fragments of what is printed.
type want struct {
	refused bool
	has     []string
	hasNot  []string
	// within is how long the expected answer may take, because the operator acts a moment later; 0 means that the first answer counts.
	within time.Duration
	// timed makes the player print how long the answer took, counted from the end of the previous command.
	timed bool
}

// soon is how long the operator may take, with plenty of room for a busy machine.
const soon = 10 * time.Second

func wantPrint(fragments ...string) want   { return want{has: fragments} }
func wantRefusal(fragments ...string) want { return want{refused: true, has: fragments} }

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

// fullStory returns the scenes in their order. The last scene, about billing, is not among them: playHere adds it.
func fullStory() []scene {
	return []scene{tenants(), tree(), propagation(), hierarchy(), strangers(), raised(), attacks(), revoked(), sharedPair(), updates(),
		removal(), distribution(), budget(), onRequest(), migration()}
}

func tenants() scene {
	return scene{
		name: "tenants", story: "A cluster admin lets mia and carol make tenants. Each makes one, and is its manager.",
		steps: []step{
			{"admin", "create clusterrolebinding tenant-creators --clusterrole=warren:lnamespace-creator --user=mia --user=carol",
				wantPrint("created")},
			{"mia", "create -f hack/demo/payments.yaml", wantPrint("payments created")},
			{"carol", "create -f hack/demo/shop.yaml", wantPrint("shop created")},
			{"mia", "wait lns/payments lns/shop --for=condition=Ready --timeout=10s", wantPrint("payments condition met", "shop condition met")},
			{"mia", "get lns", wantPrint("payments", "shop", "True")},
			{"dave", "create secret generic till -n shop --from-literal=pin=1234", wantPrint("created").soon()},
		},
	}
}

func tree() scene {
	return scene{
		name: "tree", story: "alice, a user of payments, grows the tree by herself.",
		steps: []step{
			{"alice", "create -f hack/demo/pay-web.yaml", wantPrint("pay-web created").soon()},
			{"alice", "wait subns/pay-web -n payments --for=condition=Ready --timeout=10s", wantPrint("condition met")},
			{"alice", "create -f hack/demo/pay-db.yaml", wantPrint("pay-db created").soon()},
			{"alice", "wait subns/pay-db -n pay-web --for=condition=Ready --timeout=10s", wantPrint("condition met")},
			{"alice", "warren tree payments", wantPrint("payments", "pay-web", "pay-db")},
		},
	}
}

func budget() scene {
	const refusal = "exceeded quota: hrq.tenancy.warren.dev"
	return scene{
		name: "budget", story: "A cluster admin limits what all namespaces of shop may hold together. Each has one ConfigMap already, " +
			"and room is made for the next one before Kubernetes judges it.",
		steps: []step{
			{"admin", `patch lns shop --type=merge -p '{"spec":{"limits":{"hard":{"count/configmaps":"3"}}}}'`, wantPrint("patched")},
			{"admin", "wait lns/shop --for=condition=BudgetEnforced --timeout=20s", wantPrint("condition met")},
			{"dave", "create configmap one -n shop", wantPrint("created").soon()},
			{"dave", "create configmap two -n shop", wantPrint("created").soon()},
			{"dave", "create configmap three -n shop", wantRefusal(refusal)},
			{"dave", "warren quota -n shop", wantPrint("count/configmaps: 3 used")},
			{"admin", `patch lns shop --type=merge -p '{"spec":{"limits":null}}'`, wantPrint("patched")},
			{"dave", "create configmap three -n shop", wantPrint("created").soon()},
		},
	}
}

func onRequest() scene {
	const question = "auth can-i create resourcequotas -n payments"
	return scene{
		name: "sudo on request", story: "mia lets alice ask for sudo. alice's request needs mia's approval, and ends by itself, even while the " +
			"operator is down.",
		steps: []step{
			{"mia", `patch lns payments --type=merge -p '{"spec":{"sudoRequests":{"eligible":[{"kind":"User","name":"alice"}]}}}'`,
				wantPrint("patched")},
			{"alice", question, wantRefusal("no")},
			{"alice", "auth can-i create sudorequests -n payments", wantPrint("yes").soon()},
			{"alice", "sudo --tenant payments " + question, wantRefusal("ask for it: kubectl sudo request --tenant payments")},
			{"alice", "sudo request --tenant payments --for 10m --reason 'INC-42: limit the pods'", wantPrint("To approve")},
			{"mia", "sudo list --pending --tenant payments", wantPrint("alice", "INC-42")},
			{"mia", "sudo approve --tenant payments $(kubectl get sudorequests -n payments -o jsonpath={.items[0].metadata.name})",
				wantPrint("approved")},
			{"alice", "sudo --tenant payments " + question, wantPrint("yes").soon()},
			{"alice", "sudo list --tenant payments", wantPrint("Granted").soon()},
			{"alice", "sudo end --tenant payments", wantPrint("ended")},
			{"alice", question + " --as=system:serviceaccount:warren-sudo:payments",
				want{refused: true, has: []string{"cannot impersonate"}, within: soon, timed: true}},
		},
	}
}

func propagation() scene {
	return scene{
		name: "propagation", story: "A Secret with the label propagate reaches the whole tree.",
		steps: []step{
			{"alice", "create -f hack/demo/database.yaml", wantPrint("database created")},
			{"alice", "get secret database -n pay-web" + value, wantPrint("Zmlyc3Q=").soon()},
			{"alice", "get secret database -n pay-db" + value, wantPrint("Zmlyc3Q=").soon()},
			{"alice", "warren trace secret/database -n pay-db", wantPrint("payments -> pay-web -> pay-db", "update")},
			{"alice", "warren describe pay-db", wantPrint("sub-namespace", "payments", "database")},
			{"alice", "warren get secrets --tenant payments", wantPrint("pay-web", "pay-db", "database")},
		},
	}
}

func hierarchy() scene {
	return scene{
		name: "hierarchy", story: "alice says what her tree must have, and a namespace from elsewhere can't be placed in it by its owner.",
		steps: []step{
			{"alice", "create -f hack/demo/hierarchy.yaml", wantPrint("hierarchy created")},
			{"alice", "wait hier/hierarchy -n payments --for=condition=ChildrenReady --timeout=10s", wantPrint("condition met")},
			{"alice", "get secret database -n pay-ledger" + value, wantPrint("Zmlyc3Q=").soon()},
			{"admin", "create namespace legacy", wantPrint("created")},
			{"admin", "create rolebinding owner -n legacy --clusterrole=admin --user=carol", wantPrint("created")},
			{"carol", "create -f hack/demo/legacy.yaml",
				wantRefusal(`needs update on hierarchyconfigurations in namespace "payments" (proposed parent)`).soon()},
			{"admin", "annotate namespace legacy tenancy.warren.dev/adopt=$(kubectl get lns payments -o jsonpath={.metadata.uid})",
				wantPrint("annotated")},
			{"admin", "create -f hack/demo/legacy.yaml", wantPrint("hierarchy created")},
			{"admin", "wait hier/hierarchy -n legacy --for=condition=Ready --timeout=10s", wantPrint("condition met")},
			{"alice", "get secret database -n legacy" + value, wantPrint("Zmlyc3Q=").soon()},
		},
	}
}

func strangers() scene {
	return scene{
		name: "strangers", story: "alice's rights end where her tenant ends, and she can't be somebody else.",
		steps: []step{
			{"alice", "get secret till -n shop", wantRefusal("forbidden")},
			{"alice", "get secrets -n payments" + sudo, wantRefusal("cannot impersonate")},
		},
	}
}

func raised() scene {
	return scene{
		name: "sudo", story: "bob is a sudoer of both tenants. Without sudo bob is refused. With sudo in one tenant bob reads the Secrets " +
			"there, and none of the other tenant.",
		steps: []step{
			{"bob", "get secrets -n pay-db", wantRefusal("forbidden")},
			{"bob", "get secrets -n pay-db" + sudo, wantPrint("database").soon()},
			{"bob", "sudo --reason 'INC-42: what is in there?' get secrets -n pay-db", wantPrint("database")},
			{"bob", "get secrets -n shop" + sudo, wantRefusal("forbidden")},
			{"bob", "get secrets -n shop" + sudoShop, wantPrint("till").soon()},
		},
	}
}

// operator is the operator's service account. A step that acts as this user shows what a stolen token of the operator may do.
const operator = "system:serviceaccount:warren-system:warren-controller-manager"

func attacks() scene {
	return scene{
		name: "attacks", story: "Four attacks. Each is refused inside the API server, by a policy, also while the operator is down.",
		steps: []step{
			{"bob", "label namespace pay-web pod-security.kubernetes.io/enforce=privileged" + sudo,
				wantRefusal("belongs to a tenant", "pod-security.kubernetes.io/enforce")},
			{"alice", `patch secret database -n pay-web -p '{"stringData":{"password":"mine"}}'`,
				wantRefusal("database is a copy of payments/database; change the source instead")},
			{"admin", "create namespace carols", wantPrint("created")},
			{"admin", "create rolebinding owner -n carols --clusterrole=cluster-admin --user=carol", wantPrint("created")},
			{"carol", "label namespace carols tenancy.warren.dev/parent=payments",
				wantRefusal("only the operator and cluster administrators may change these keys", "tenancy.warren.dev/parent").soon()},
			{"admin", "create clusterrolebinding thief --clusterrole=cluster-admin --user=mallory --as=" + operator,
				wantRefusal("the operator may not write ClusterRoleBinding thief")},
		},
	}
}

func revoked() scene {
	gone := want{refused: true, has: []string{"cannot impersonate"}, within: 5 * time.Second, timed: true}
	return scene{
		name: "revocation", story: "mia takes bob off the sudoers of payments: bob is refused within a second, while bob's sudo in shop goes on.",
		steps: []step{
			{"mia", `patch lns payments --type=merge -p '{"spec":{"sudoers":[]}}'`, wantPrint("patched")},
			{"bob", "get secrets -n pay-db" + sudo, gone},
			{"bob", "get secrets -n shop" + sudoShop, wantPrint("till")},
			{"admin", "get clusterrole,clusterrolebinding warren:self:bob -o name", wantPrint("clusterrole.", "clusterrolebinding.")},
		},
	}
}

func sharedPair() scene {
	return scene{
		name:  "shared pair",
		story: "Both tenants shared the pair warren:self:bob. carol takes bob off the sudoers of shop too, and the pair is deleted.",
		steps: []step{
			{"carol", `patch lns shop --type=merge -p '{"spec":{"sudoers":[]}}'`, wantPrint("patched")},
			{"bob", "get secrets -n shop" + sudoShop, wantRefusal("cannot impersonate").soon()},
			{"admin", "get clusterrole warren:self:bob", wantRefusal("not found").soon()},
			{"admin", "get clusterrolebinding warren:self:bob", wantRefusal("not found").soon()},
		},
	}
}

func updates() scene {
	return scene{
		name: "copies", story: "The Secret changes, then goes: so do its copies.",
		steps: []step{
			{"alice", `patch secret database -n payments -p '{"stringData":{"password":"second"}}'`, wantPrint("patched")},
			{"alice", "get secret database -n pay-web" + value, wantPrint("c2Vjb25k").soon()},
			{"alice", "get secret database -n pay-db" + value, wantPrint("c2Vjb25k").soon()},
			{"admin", "warren config diff hack/demo/no-secrets.yaml -o wide", wantPrint("delete", "pay-db", "database",
				"propagation.kinds has Secret in mode Remove")},
			{"alice", "create configmap banner -n payments --from-literal=text=hello", wantPrint("created")},
			{"admin", "warren config diff hack/demo/all-configmaps.yaml -o wide",
				wantPrint("create", "pay-db", "banner").without("kube-root-ca.crt")},
			{"alice", "delete secret database -n payments", wantPrint("deleted")},
			{"alice", "get secret database -n pay-web", wantRefusal("not found").soon()},
			{"alice", "get secret database -n pay-db", wantRefusal("not found").soon()},
		},
	}
}

func removal() scene {
	// The namespace controller waits 5 s before it empties a namespace.
	gone := want{refused: true, has: []string{"not found"}, within: 30 * time.Second}
	return scene{
		name: "removal", story: "Deleting a SubNamespace deletes its namespace, and nothing else.",
		steps: []step{
			{"alice", "delete subns pay-db -n pay-web", wantPrint("deleted")},
			{"admin", "get namespace pay-db", gone},
			{"alice", "warren tree payments", wantPrint("payments", "pay-web").without("pay-db")},
		},
	}
}

func migration() scene {
	return scene{
		name: "migration", story: "A cluster admin moves a tree from HNC to Warren. Nothing is deleted or made anew: org-web and its copy are " +
			"the ones that HNC made.",
		steps: []step{
			{"admin", "apply -f hack/demo/hnc.yaml", wantPrint("org-web").soon()},
			{"admin", "annotate secret registry -n org uid=$(kubectl get secret registry -n org-web -o jsonpath={.metadata.uid})",
				wantPrint("annotated")},
			{"admin", "warren migrate hnc", wantPrint("1 Deployment", "org-web", "finish")},
			{"admin", "warren migrate hnc --apply --yes", wantPrint("SubNamespace org/org-web created", "Only the last step is left")},
			{"admin", "warren tree org", wantPrint("[s] org-web")},
			{"admin", "warren migrate hnc --finish --yes", wantPrint("The migration is done")},
			{"admin", "get secret registry -n org-web -o jsonpath={.metadata.labels}", wantPrint(`"tenancy.warren.dev/inherited-from":"org"`).
				without("hnc.x-k8s.io")},
			{"admin",
				`get secrets -n org-web -o jsonpath={.items[?(@.metadata.uid=="$(kubectl get secret registry -n org -o ` +
					`jsonpath={.metadata.annotations.uid})")].metadata.name}`, wantPrint("registry")},
			{"admin", `patch secret registry -n org -p '{"stringData":{"password":"second"}}'`, wantPrint("patched")},
			{"admin", "get secret registry -n org-web" + value, wantPrint("c2Vjb25k").soon()},
			{"admin", "warren migrate hnc", wantPrint("Nothing is to be written")},
		},
	}
}

func distribution() scene {
	const copied = "get secret settings -n payments -o jsonpath={.metadata.labels}"
	return scene{
		name: "distribution", story: "A cluster admin gives every namespace of a tree one Secret. alice has one of that name: nothing is " +
			"written until alice deletes it.",
		steps: []step{
			{"alice", "create secret generic settings -n pay-web --from-literal=mine=1", wantPrint("created")},
			{"admin", "create -f hack/demo/settings.yaml",
				wantPrint("settings created", "1 namespace already has a Secret settings that is no copy of this ResourceDistribution, "+
					"or is being deleted: pay-web")},
			{"admin", "wait rdist/settings --for=condition=Stalled --timeout=10s", wantPrint("condition met")},
			{"admin", "warren distribution describe settings", wantPrint("In conflict (1):", "pay-web: Unrelated")},
			{"alice", copied, wantRefusal("not found")},
			{"alice", "delete secret settings -n pay-web", wantPrint("deleted")},
			{"admin", "wait rdist/settings --for=condition=Ready --timeout=10s", wantPrint("condition met")},
			{"alice", copied, wantPrint("distributed-by")},
			{"admin", "delete rdist settings", wantPrint("deleted", "this removes the copy from")},
			{"alice", copied, wantRefusal("not found").soon()},
		},
	}
}
