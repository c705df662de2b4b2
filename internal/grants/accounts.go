package grants

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// A service account is a name in a namespace, and anybody may take a free namespace name. So a listed account is tied to the
// namespace that had the name when the account was listed: the namespace's UID is remembered in the status, which only the operator
// writes.

// RememberAccounts returns status.serviceAccounts for the service accounts that the tenant lists: the UIDs that remembered holds,
// and those that uidOf returns for accounts that are new there. An account whose namespace has been in the tree gets an empty UID
// for good, because the users of the tree could make tokens that outlive the namespace's stay. Accounts that no list holds any more
// are left out.
func RememberAccounts(tenant *v1alpha1.LNamespace, remembered []v1alpha1.ListedServiceAccount, inTree func(namespace string) bool,
	uidOf func(namespace string) types.UID) []v1alpha1.ListedServiceAccount {
	var accounts []v1alpha1.ListedServiceAccount
	for _, s := range ServiceAccounts(tenant) {
		account := v1alpha1.ListedServiceAccount{Namespace: s.Namespace, Name: s.Name}
		known := slices.IndexFunc(remembered, isAccount(s))
		switch {
		case inTree(s.Namespace):
		case known >= 0:
			account.NamespaceUID = remembered[known].NamespaceUID
		default:
			account.NamespaceUID = uidOf(s.Namespace)
		}
		accounts = append(accounts, account)
	}
	return accounts
}

// ServiceAccounts returns the service accounts on the three lists, each once.
func ServiceAccounts(tenant *v1alpha1.LNamespace) []v1alpha1.Subject {
	var accounts []v1alpha1.Subject
	for _, list := range Lists() {
		for _, s := range list.Of(tenant) {
			if s.Kind == v1alpha1.SubjectServiceAccount && !slices.Contains(accounts, s) {
				accounts = append(accounts, s)
			}
		}
	}
	return accounts
}

// DoubtAccount says why an account gets nothing where the namespace that has its name now, with UID uidNow, is not the remembered
// one; else "".
func DoubtAccount(account v1alpha1.Subject, remembered []v1alpha1.ListedServiceAccount, uidNow types.UID) string {
	known := slices.IndexFunc(remembered, isAccount(account))
	if known >= 0 && uidNow != "" && remembered[known].NamespaceUID == uidNow {
		return ""
	}
	return fmt.Sprintf("%s is suspended, because namespace %s was missing, made anew or in this tenant's tree since the account was listed: "+
		"take it off all lists, and list it again when this message is gone and the namespace is the one that you mean", account, account.Namespace)
}

func isAccount(s v1alpha1.Subject) func(v1alpha1.ListedServiceAccount) bool {
	return func(known v1alpha1.ListedServiceAccount) bool {
		return known.Namespace == s.Namespace && known.Name == s.Name
	}
}
