package controlplane

import (
	"maps"
)

// Admin is the cluster admin: a member of system:masters.
const Admin = "admin"

// Operator is the user that the operator runs as: its own service account, which the policies name.
const Operator = "system:serviceaccount:warren-system:warren-controller-manager"

// controllerManager is the user of the controller manager. Its rights are those of the role that Kubernetes ships.
const controllerManager = "system:kube-controller-manager"

// People returns the plain users of every control plane, with their groups: the users that the specification names. None of them
// has a right of its own.
func People() map[string][]string {
	return map[string][]string{
		"alice": nil, "bob": nil, "carol": nil, "dave": nil, "erin": nil, "mia": nil,
		"otto": {"pay-oncall"}, "devi": {"pay-devs"},
		"eve": nil, "mallory": nil,
	}
}

func allUsers(more map[string][]string) map[string][]string {
	users := People()
	maps.Copy(users, more)
	users[Admin] = []string{"system:masters"}
	users[Operator] = []string{"system:serviceaccounts", "system:serviceaccounts:warren-system"}
	users[controllerManager] = nil
	return users
}
