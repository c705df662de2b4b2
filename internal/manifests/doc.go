// Package manifests generates the manifests that depend on the configured kinds: the policies that list these kinds, with their bindings,
// and the operator's role for them. The texts of the policies are in templates; only the lists of kinds are generated.
//
// The cage is the set of policies operator-cage-*: they bound what the operator's own token may write, so that a stolen token is of
// little use.
//
// # Rules for the text of a policy
//
// They hold for the policies in config/policy, too. What they say about the API server was observed on version 1.36.3.
//
//   - A binding that selects Namespaces by a label uses objectSelector, which matches if the old or the new object has the label. For an
//     UPDATE of a Namespace, namespaceSelector looks at the new labels only, so a user who removes the label would escape.
//   - namespaceObject is for variables and validations. In matchConditions it is empty, and the expression fails, so that failurePolicy
//     Fail refuses every request. In a request about a Namespace it is null. It comes from a cache, which may be late where there are
//     several API servers: the operator repeats a write that the cage has refused. matchConditions can't use variables either.
//   - An expression has at most two checks of the authorizer. A check without name and namespace asks for a right in the whole cluster:
//     RoleBindings and rules with resourceNames don't give it, and patch doesn't count as update.
//   - A messageExpression can't use the authorizer, and the API server evaluates it for every request that matches. So it must not build
//     an unbounded list: with 10,000 annotations that took 1.3 s, and with 30,000 the cost was exceeded and the request refused. An
//     expression that compares keys compares the whole maps first.
//   - A request to /status or /finalize of a Namespace can change its labels, annotations, owners and finalizers; one to /status of a
//     ResourceQuota or Service can, too. So each policy matches the subresources.
//   - The ServiceAccounts of kube-system are not exempt where an object with a mark of the operator is created. Controllers there create
//     objects with labels from tenants' templates (ReplicaSets, Pods, Jobs, claims, EndpointSlices), so a tenant could forge copies.
//   - No controller is exempt by its name where its right can be asked for: the namespace controller needs only update on
//     namespaces/finalize. The API server itself, as system:apiserver, writes the status of copied ResourceQuotas.
//   - The name of an RBAC object contains its user or tenant in a form that can be reversed, because CEL has no hash function. A policy
//     could not connect a hashed name with its user, and a thief of the token could let one user become another.
//   - A policy lists kinds instead of all resources. With all, the kubelet could not delete a tenant's pod that has a label of ours, and
//     an unrelated write would cost time. The cage lists the same kinds; warren_policy_gap reports a configured kind that is not listed.
//   - Selectors match labels only. So policy copy judges only objects with a label of ours: a policy on all objects would cost too much.
//     On others, an annotation such as source-hash means nothing, not even to the cage.
//   - The schema of LNamespaces has no default for limits: policy tenant-limits would refuse every new LNamespace of a user who is not a
//     cluster admin.
//   - One component loosens one policy in one place. Of the cage, only operator-cage-distribution judges objects with the label
//     distributed-by, and the components distribution and distribution-overwrite replace its validations. Gate PropagateGenerated opens
//     variable labelled of operator-cage-objects when it is generated. No component does that: there would be two switches for one thing,
//     and the next generated policy would close again what the component had opened.
//
// Policies can judge the configurations of webhooks, and webhooks can't. Nothing can judge the policies and their bindings themselves.
package manifests
