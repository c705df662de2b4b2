package v1alpha1

import "strings"

// Labels and annotations that Warren reads or writes. Who may set which is in docs/reference/keys.md.
const (
	// LabelType on a Namespace states that it is a root (TypeRoot) or a template (TypeTemplate).
	LabelType = Domain + "/type"
	// LabelParent on a Namespace names its parent. It is the one source of truth for the forest.
	LabelParent = Domain + "/parent"
	// LabelTemplate on a root, a template or an instance names the template that it references.
	LabelTemplate = Domain + "/template"
	// LabelBound = "true" on a Namespace: its life belongs to the SubNamespace of its name in its parent.
	LabelBound = Domain + "/bound"
	// LabelProtected = "true" on a Namespace: never in the forest, nothing is written there.
	LabelProtected = Domain + "/protected"
	// LabelReleased = "true" on a Namespace: the operator has let it go, so it is in no tree. Until a cluster admin takes the label off, only
	// cluster admins and the operator may change the namespace's labels, annotations, owners and finalizers.
	LabelReleased = Domain + "/released"
	// AnnotationAdopt on a Namespace is a cluster admin's mark. It names who may make it part of a tenant: the user whose
	// LNamespace of this name adopts it, or, by its UID, the LNamespace that adopts it or in whose tree it is placed. MarkClusterAdmins
	// names an LNamespace that a cluster admin made.
	AnnotationAdopt = Domain + "/adopt"
	// MarkClusterAdmins as the value of AnnotationAdopt stands for all cluster admins: an LNamespace without AnnotationCreator may adopt.
	MarkClusterAdmins = "system:masters"
	// TreeLabelSuffix ends the label <ancestor>.tree.tenancy.warren.dev/depth, which holds the distance to that ancestor.
	TreeLabelSuffix = ".tree." + Domain + "/depth"
	// AnnotationAncestry on a Namespace is its path, root/child/grandchild.
	AnnotationAncestry = Domain + "/ancestry"
	// AnnotationParentUID on a Namespace is the digest of its parent's UID (DigestUID). It shows whether another namespace has
	// taken the parent's name.
	AnnotationParentUID = Domain + "/parent-uid"
	// AnnotationAppliedParent on a Namespace records the last request that the operator carried out there. Its form is <uid>:<parent>:
	// the UID of the HierarchyConfiguration, and the parent that it asked for.
	AnnotationAppliedParent = Domain + "/applied-parent"
	// AnnotationHeldBy is on a Namespace that a HierarchyConfiguration placed in a tenant's tree. It is a JSON list of the subjects on the
	// tenant's lists, such as "User alice", that could administer the namespace by one of its own bindings at that time. When the
	// tenant lists none of them any more, the namespace leaves the tree.
	AnnotationHeldBy = Domain + "/held-by"
	// AnnotationInherited on a Namespace lists the labels and (with a leading @) annotations that the operator wrote there.
	AnnotationInherited = Domain + "/inherited"
	// AnnotationCascading = "true" on a Namespace: what is below it may be deleted with it.
	AnnotationCascading = Domain + "/cascading"
	// AnnotationLNamespaceUID on a root is the UID of the LNamespace that made or adopted it. On an access RoleBinding and
	// its copies, it is the UID of the LNamespace for which the operator wrote them.
	AnnotationLNamespaceUID = Domain + "/lnamespace-uid"
	// AnnotationMovedFrom on a SubNamespace is the parent from which kubectl warren is moving its namespace, so that an interrupted
	// move can be continued. Meanwhile the operator sends no Warning about the place.
	AnnotationMovedFrom = Domain + "/moved-from"
	// LabelShare = "true" on a Namespace: it has a share of a budget, so webhook room is asked before objects that count are created there.
	LabelShare = Domain + "/share"
	// AnnotationLacking on the share of a namespace, its ResourceQuota of a budget, is a sentence about the last request that the operator
	// could not serve: which limit had too little free, and who can help. It goes when the share changes.
	AnnotationLacking = Domain + "/lacking"
	// AnnotationLimits on the share of a namespace tells what the limits above it allow, and what was used of them when the share was written
	// last. People who work in the namespace may read it.
	AnnotationLimits = Domain + "/limits"
	// AnnotationCreator on an LNamespace is the user who made it. An LNamespace without it was made by a cluster admin.
	AnnotationCreator = Domain + "/creator"

	// LabelPropagate on an object makes it a source; its value is a mode: ModeCreate, ModeUpdate or ModeNone.
	LabelPropagate = Domain + "/propagate"
	// AnnotationSelect on a source is a label selector on the namespaces that get a copy.
	AnnotationSelect = Domain + "/select"
	// AnnotationPropagateGenerated on a generator makes the objects that it controls sources.
	AnnotationPropagateGenerated = Domain + "/propagate-generated"
	// LabelInheritedFrom on a copy names the namespace of its source.
	LabelInheritedFrom = Domain + "/inherited-from"
	// AnnotationSourceHash on a copy is <mode>:<place>:<content>: what it was written from, and where.
	AnnotationSourceHash = Domain + "/source-hash"

	// LabelDistributedBy on a distributed copy names its ResourceDistribution.
	LabelDistributedBy = Domain + "/distributed-by"
	// AnnotationLocked = "true" on a distributed copy: driftPolicy is Revert.
	AnnotationLocked = Domain + "/locked"
	// AnnotationAdopted = "true" on a distributed copy: the object was there before, and is handed back, never deleted.
	AnnotationAdopted = Domain + "/adopted"

	// LabelAccess on an access object describes what it is for; see the Access constants.
	LabelAccess = Domain + "/access"
	// LabelTenant on an access object names its tenant. Self pairs, which tenants share, have none.
	LabelTenant = Domain + "/tenant"
	// AnnotationUser on a self pair is the user as written, for readers. Nothing is decided from it.
	AnnotationUser = Domain + "/user"

	// LabelCreatedBy = OperatorName on a Namespace is informational, set once at creation.
	LabelCreatedBy = "app.kubernetes.io/created-by"
	// LabelManagedBy = OperatorName is on every access object.
	LabelManagedBy = "app.kubernetes.io/managed-by"

	// FinalizerLNamespace is on LNamespaces, FinalizerSubNamespace on SubNamespaces; no other object has a finalizer of Warren.
	FinalizerLNamespace   = Domain + "/lnamespace"
	FinalizerSubNamespace = Domain + "/sub-namespace"
)

// Values of the keys above.
const (
	TypeRoot     = "root"
	TypeTemplate = "template"

	ModeCreate = "create"
	ModeUpdate = "update"
	ModeNone   = "none"

	AccessUsers   = "users"
	AccessSudoers = "sudoers"
	AccessSudo    = "sudo"
	AccessSelf    = "self"
	AccessEdit    = "edit"
	AccessSole    = "sole"
	// AccessRequest is on the Job, Role and RoleBinding of a grant of sudo on request.
	AccessRequest = "request"
	// AccessOperator is on RoleBindings that give the operator its own right in one namespace.
	AccessOperator = "operator"

	True = "true"

	// OperatorName is the operator's field manager, event source and value of created-by and managed-by.
	OperatorName = "warren"
	// AcceptedConfigName is the ConfigMap in the operator's namespace that holds the configuration file in force; the operator writes it.
	AcceptedConfigName = "warren-accepted-config"

	// OperatorAccount is the name of the operator's service account and of its Deployment.
	OperatorAccount = "warren-controller-manager"
	// OperatorBinding is the name of the RoleBinding that gives the operator KindsRole in one namespace.
	OperatorBinding = "warren:operator"
	// KindsRole is the ClusterRole that aggregates the operator's rights on the propagated and distributed kinds.
	KindsRole = "warren-kinds"
	// SudoersSuffix ends the name of the group of a tenant's sudoers.
	SudoersSuffix = "-sudoers"
	// RailPrefix begins the names that only cluster admins may give in a tree: those of quotas and policies that hold tenants in bounds.
	RailPrefix = "warren-rail-"
	// SudoNamespace has the timers of sudo on request, and the rights that end with them.
	SudoNamespace = "warren-sudo"
	// SudoUserPrefix begins the name of the user that groups and service accounts among a tenant's sudoers impersonate.
	SudoUserPrefix = "warren:sudo:"
)

// OperatorUser is the user name of the operator, whose service account is in namespace. The admission policies name it.
func OperatorUser(namespace string) string {
	return "system:serviceaccount:" + namespace + ":" + OperatorAccount
}

// TemporarySudoer is the user name that people become who have sudo on request in the tree of tenant. No such service account exists.
func TemporarySudoer(tenant string) string {
	return "system:serviceaccount:" + SudoNamespace + ":" + tenant
}

// TreeLabel is the key of the tree label for ancestor.
func TreeLabel(ancestor string) string { return ancestor + TreeLabelSuffix }

// SudoersGroup is the group whose members are cluster-admin in the tree of tenant.
func SudoersGroup(tenant string) string { return tenant + SudoersSuffix }

// IsReservedKey reports whether a label or annotation key is in the operator's domain or a subdomain of it.
func IsReservedKey(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	return found && (domain == Domain || strings.HasSuffix(domain, "."+Domain))
}
