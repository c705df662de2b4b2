// Package grants determines which RBAC objects a tenant implies, whether an existing object is one of them, and in
// which order the existing ones become the desired ones. It decides; controllers/access reads and writes.
//
// Sudo means that a sudoer impersonates the group <tenant>-sudoers, which is bound to cluster-admin in the tenant's
// tree. The RBAC rules for that come in two forms: the legacy form (verb impersonate) and the constrained form of
// Kubernetes 1.36 (verbs impersonate:user-info and impersonate-on:user-info:<verb>). An owner of an access object is a
// tenant that an owner reference of the object names; a shared object has several.
//
// # Who impersonates whom
//
// The API server checks the impersonation of system:serviceaccount:* on the namespaced resource serviceaccounts. A
// ClusterRole with resourceNames [deployer] would therefore let its holder become every ServiceAccount deployer of the
// cluster. The constrained form cannot combine a service account with groups at all. So ServiceAccounts, like the
// members of Groups, impersonate SudoUser, and only Users have self pairs.
//
// No rule has both forms, except during a change of the mode: if a rule has the verb impersonate, the API server falls
// back to it. Wildcards inside a verb, such as impersonate-on:user-info:*, do not work.
//
// # Service accounts
//
// ClusterRole admin allows its holder to create tokens of the service accounts of a namespace, and to impersonate them.
// So every user of a tenant could act as an account of the tenant's tree: with sudo if the account is a sudoer, and by
// editing the lists if it is a manager. A user who was removed could keep the account's token. That is why no list may
// contain such an account (see Refusals). One case is not detected. The webhooks are off, an account is listed while no
// operator runs, and the namespace is replaced before the operator starts.
//
// # The group of sudoers
//
// In the legacy form, the creator of LNamespace platform may impersonate group platform-sudoers in the whole cluster. A
// binding of that group that is older than the tenant would give its rights to the creator. So such bindings stop the
// first grant (see StopsGrant). The time of a binding's creation would not be sufficient: a binding may be older than
// the tenant, and name the group only later. status.sudoGrantedAt stays while a glob protects the root by mistake, so
// that the tenant keeps its sudo.
//
// # Shared and sole pairs
//
// The API server reads all ClusterRoleBindings for each request of any user, so a tenant of one person has one (see
// Objects.Sole). Its name contains the tenant and the person, and the rules and the subject follow from the name. So
// the policies on the operator's own writes can check the pair. With one name for every person, an API server could see
// the new binding before the new role. Then the new person could impersonate the previous one. For the same reason the
// names of pairs are escaped reversibly, and are no hashes.
//
// Owners of shared pairs carry neither controller nor blockOwnerDeletion. The API server refuses two controllers. Under
// the admission plugin OwnerReferencesPermissionEnforcement, which is on in OpenShift, it refuses blockOwnerDeletion.
//
// # Revoking
//
// A right ends when its subject is no longer in the binding, never by the garbage collector or by a mark (see Marked).
// The collector deletes a marked object in about 0.1 s, but right after the CRD's first installation it needed 41 s.
// "kubectl delete --cascade=orphan" makes it remove the owner references and delete nothing. So the operator deletes
// access objects itself before it removes its finalizer, and orphan has no effect on an LNamespace.
//
// The mark is written by an update with resourceVersion, never by a strategic merge patch. The uid is the merge key of
// owner references, so such a patch would add a second reference; the collector would remove that one, and the tenant
// would stay owner.
//
// The API server keeps an allowed constrained impersonation for 10 s (measured: 9.98 s; in the legacy form a revocation
// takes 0.02 s). It does not keep refusals. So Legacy is the default.
package grants
