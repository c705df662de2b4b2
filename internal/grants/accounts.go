package grants

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// A service account is a name in a namespace, and anybody may take a free namespace name. So a listed account is tied
// to the namespace that had the name when the account was listed. A digest of that namespace's UID is stored in the
// status, which only the operator writes. Managers read the status, and may list an account of a namespace that they
// may not see. They must not learn that namespace's UID, because the webhooks take the UID as a proof that the sender
// of a review may read the namespace.

// RememberAccounts returns status.serviceAccounts for the service accounts that the tenant lists. For accounts in
// remembered, it keeps the digest; for new ones, it makes the digest of the UID that uidOf returns. A plain UID in
// remembered becomes its digest. An account whose namespace is in the tree gets an empty digest. It keeps that digest
// after the namespace has left the tree, because tokens that users of the tree made there may still be valid. Accounts
// that are on no list any more are left out.
func RememberAccounts(tenant *v1alpha1.LNamespace, remembered []v1alpha1.ListedServiceAccount, inTree func(namespace string) bool,
	uidOf func(namespace string) types.UID) []v1alpha1.ListedServiceAccount {
	var accounts []v1alpha1.ListedServiceAccount
	for _, s := range ServiceAccounts(tenant) {
		account := v1alpha1.ListedServiceAccount{Namespace: s.Namespace, Name: s.Name}
		known := slices.IndexFunc(remembered, isAccount(s))
		switch {
		case inTree(s.Namespace):
		case known >= 0:
			account.NamespaceUID = digestUID(remembered[known].NamespaceUID)
		default:
			account.NamespaceUID = digestUID(uidOf(s.Namespace))
		}
		accounts = append(accounts, account)
	}
	return accounts
}

// ServiceAccounts returns the service accounts on the three lists, each once, without those whose name or namespace is
// not valid.
func ServiceAccounts(tenant *v1alpha1.LNamespace) []v1alpha1.Subject {
	var accounts []v1alpha1.Subject
	for _, list := range Lists() {
		for _, s := range list.Of(tenant) {
			if s.Kind == v1alpha1.SubjectServiceAccount && refuseInvalid(s) == "" && !slices.Contains(accounts, s) {
				accounts = append(accounts, s)
			}
		}
	}
	return accounts
}

// DoubtAccount explains why an account gets nothing: the namespace that now has the name of the account's namespace,
// with UID uidNow, is not the remembered one. It returns "" if it is.
func DoubtAccount(account v1alpha1.Subject, remembered []v1alpha1.ListedServiceAccount, uidNow types.UID) string {
	known := slices.IndexFunc(remembered, isAccount(account))
	if known >= 0 && uidNow != "" && v1alpha1.RecordsUID(string(remembered[known].NamespaceUID), string(uidNow)) {
		return ""
	}
	return fmt.Sprintf("%s is suspended: since it was listed, namespace %s was missing, was created again, or was in this tenant's tree. "+
		"Remove the account from all lists, wait until this message is gone, check the namespace, and list the account again",
		account, account.Namespace)
}

func digestUID(uid types.UID) types.UID { return types.UID(v1alpha1.DigestUID(string(uid))) }

func isAccount(s v1alpha1.Subject) func(v1alpha1.ListedServiceAccount) bool {
	return func(known v1alpha1.ListedServiceAccount) bool {
		return known.Namespace == s.Namespace && known.Name == s.Name
	}
}
