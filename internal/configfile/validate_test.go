package configfile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// refusals are bodies of files with the errors that they cause, one a line. A valid body causes none.
type refusals map[string]struct {
	reason string
	body   string
	want   []string
}

func (cases refusals) check(t *testing.T) {
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, problems(t, tc.body)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	refusals{
		"SUB-F4 four mistakes in references and keys are four lines, each with its path": {
			reason: "a group that root doesn't define, a bad regexp, our own keys, a cluster-scoped kind",
			body: `subNamespaces: {namingPolicies: [{root: "^app-(?P<team>.*)", match: "^app-${tean}-"}, {root: "^b", match: "a(b"}]}
inheritance: {labels: ["tenancy.warren.dev/*"]}
propagation: {kinds: [{group: rbac.authorization.k8s.io, kind: ClusterRole}]}
`,
			want: []string{
				`inheritance.labels[0]: Forbidden: "tenancy.warren.dev/*" can't be inherited: keys of tenancy.warren.dev belong to the operator`,
				`subNamespaces.namingPolicies[0].match: Invalid value: "^app-${tean}-": group "tean" is not defined by root`,
				"subNamespaces.namingPolicies[1].match: Invalid value: \"a(b\": must be a Go regexp: error parsing regexp: missing closing ): `a(b`",
				`propagation.kinds[0].kind: Forbidden: "ClusterRole" is cluster-scoped`,
			},
		},
		"Globs": {
			reason: "syntax everywhere; our domain and repeats where keys are inherited; a wide pattern may match our keys",
			body: `inheritance: {labels: [team, team, "*", "*/*", "*.tenancy.warren.dev/x", ""], annotations: ` +
				`["x.tree.tenancy.warren.dev/d*", "mytenancy.warren.dev/*"], undelegated: ["["]}
protectedNamespaces: ["a["]
tenants: {reservedNames: ["b["]}
propagation: {excludedLabels: ["c["], excludedAnnotations: ["tenancy.warren.dev/*", "d["]}
`,
			want: []string{
				`inheritance.labels[5]: Required value: an empty pattern matches nothing`,
				`inheritance.labels[1]: Duplicate value: "team"`,
				`inheritance.annotations[0]: Forbidden: "x.tree.tenancy.warren.dev/d*" can't be inherited: keys of tenancy.warren.dev belong to ` +
					`the operator`,
				`inheritance.undelegated[0]: Invalid value: "[": must be a pattern of path.Match: syntax error in pattern`,
				`protectedNamespaces[0]: Invalid value: "a[": must be a pattern of path.Match: syntax error in pattern`,
				`tenants.reservedNames[0]: Invalid value: "b[": must be a pattern of path.Match: syntax error in pattern`,
				`propagation.excludedLabels[0]: Invalid value: "c[": must be a pattern of path.Match: syntax error in pattern`,
				`propagation.excludedAnnotations[1]: Invalid value: "d[": must be a pattern of path.Match: syntax error in pattern`,
			},
		},
		"Budget": {
			reason: "the rules of the CRD hold for the default of all tenants",
			body:   "subNamespaces: {limits: {hard: {foo: 1, pods: 1.5}}}\n",
			want: []string{
				"subNamespaces.limits.hard: Invalid value: foo: is no resource that a ResourceQuota limits: write one such as pods, requests.cpu " +
					"or count/jobs.batch",
				"subNamespaces.limits.hard: Invalid value: pods: must be a whole number: only cpu, memory and storage have fractions",
			},
		},
		"NamingPolicies": {
			reason: "both required, both compile, every group exists, also by number and with its braces",
			body: `subNamespaces: {namingPolicies: [{}, {root: "(", match: "$1"}, {root: "^(a)", match: "$1-$2-${}-$$"}, {root: "a", match: ` +
				`"^[$0-z]"}]}`,
			want: []string{
				`subNamespaces.namingPolicies[0].root: Required value: a Go regexp on the name of a root`,
				`subNamespaces.namingPolicies[0].match: Required value: a Go regexp on the name of a new sub-namespace`,
				"subNamespaces.namingPolicies[1].root: Invalid value: \"(\": must be a Go regexp: error parsing regexp: missing closing ): `(`",
				`subNamespaces.namingPolicies[2].match: Invalid value: "$1-$2-${}-$$": group "2" is not defined by root`,
				`subNamespaces.namingPolicies[2].match: Invalid value: "$1-$2-${}-$$": group "" is not defined by root`,
			},
		},
		"ClusterAdmin": {
			reason: "cluster-admin is refused at load (ACC-R08)",
			body:   "access: {userClusterRole: cluster-admin}\n",
			want:   []string{`access.userClusterRole: Invalid value: "cluster-admin": must not be cluster-admin: that is what sudo is for`},
		},
		"ACC-C10 sudo.mode Auto is refused": {
			reason: "the operator doesn't find out what the API server knows",
			body:   "sudo: {mode: Auto}\n",
			want:   []string{`sudo.mode: Invalid value: "Auto": ` + sudoRule},
		},
		"SudoRequests": {
			reason: "each value just outside of its range",
			body:   "sudo: {requests: {maxDuration: 25h, pendingFor: 0s, historyFor: 23h, maxOpen: 0, maxPerDay: 0}}\n",
			want: []string{
				`sudo.requests.maxDuration: Invalid value: "25h0m0s": must be at most 24h`,
				`sudo.requests.pendingFor: Invalid value: "0s": must be at least 1s`,
				`sudo.requests.historyFor: Invalid value: "23h0m0s": must be at least 24h0m0s`,
				`sudo.requests.maxOpen: Invalid value: 0: must be at least 1`,
				`sudo.requests.maxPerDay: Invalid value: 0: must be at least 1`,
			},
		},
		"UserClusterRole": {
			reason: "it becomes part of a path",
			body:   "access: {userClusterRole: a/b}\n",
			want:   []string{`access.userClusterRole: Invalid value: "a/b": must be the name of a ClusterRole: may not contain '/'`},
		},
		"Ranges": {
			reason: "each number just outside its range",
			body: `subNamespaces: {limits: {subNamespaces: -1, depth: -1, copies: -1, bytes: -1}}
tenants: {maxPerCreator: -1}
propagation: {scrub: {interval: 9s, objectsPerSecond: 10001}, retry: {min: 99ms, max: 61m}}
distribution: {maxObjectBytes: 1023, maxTotalBytes: -1}
informers: {verifyInterval: -1s, idleGrace: -1s, degradedAfter: 999ms, maxInformers: 0, maxNamespaces: 0}
clientConnection: {qps: -0.5, burst: -1}
concurrency: 257
`,
			want: []string{
				`subNamespaces.limits.subNamespaces: Invalid value: -1: must be at least 0`,
				`subNamespaces.limits.depth: Invalid value: -1: must be at least 0`,
				`subNamespaces.limits.copies: Invalid value: -1: must be at least 0`,
				`subNamespaces.limits.bytes: Invalid value: -1: must be at least 0`,
				`tenants.maxPerCreator: Invalid value: -1: must be at least 0`,
				`propagation.scrub.interval: Invalid value: "9s": must be at least 10s`,
				`propagation.scrub.objectsPerSecond: Invalid value: 10001: must be from 1 to 10000`,
				`propagation.retry.min: Invalid value: "99ms": must be from 100ms to 1h0m0s`,
				`propagation.retry.max: Invalid value: "1h1m0s": must be from 100ms to 1h0m0s`,
				`distribution.maxObjectBytes: Invalid value: 1023: must be from 1024 to 1500000`,
				`distribution.maxTotalBytes: Invalid value: "-1": must be a whole number of bytes, at least 0`,
				`informers.verifyInterval: Invalid value: "-1s": must be at least 0s`,
				`informers.idleGrace: Invalid value: "-1s": must be at least 0s`,
				`informers.degradedAfter: Invalid value: "999ms": must be at least 1s`,
				`informers.maxInformers: Invalid value: 0: must be at least 1`,
				`informers.maxNamespaces: Invalid value: 0: must be at least 1`,
				`clientConnection.burst: Invalid value: -1: must be at least 0`,
				`clientConnection.qps: Invalid value: -0.5: must be a number of at least 0`,
				`concurrency: Invalid value: 257: must be from 1 to 256`,
			},
		},
		"RangesMet": {
			reason: "each number at the end of its range, and 0 where it switches off",
			body: `subNamespaces: {limits: {subNamespaces: 0, depth: 0, copies: 0, bytes: 0}}
propagation: {scrub: {interval: 0s, objectsPerSecond: 10000}, retry: {min: 1h, max: 1h}}
distribution: {maxObjectBytes: 1024, maxTotalBytes: 0}
informers: {verifyInterval: 0s, maxInformers: 1, maxNamespaces: 1}
clientConnection: {qps: 0.5, burst: 1}
concurrency: 256
billing: {flushInterval: 1s, resyncInterval: 1m, batch: {maxRows: 1, maxBytes: 1}}
`,
		},
		"SUB-F9 scope is Cluster, Namespaces or Auto; auto is refused, and so are Namespaces for kind Role and Auto for RoleBinding: the " +
			"operator must be able to revoke rights wherever granted": {
			reason: "nothing that would do nothing is accepted",
			body: "propagation: {kinds: [{kind: Secret, scope: Namespaces}, {kind: ConfigMap, scope: Auto}, {kind: Service, scope: Cluster}, " +
				"{kind: LimitRange, scope: auto}, " +
				"{group: rbac.authorization.k8s.io, kind: Role, scope: Namespaces}, {group: rbac.authorization.k8s.io, kind: RoleBinding, scope: " +
				"Auto}]}\n",
			want: []string{
				`propagation.kinds[3].scope: Invalid value: "auto": must be Auto, Cluster or Namespaces`,
				`propagation.kinds[4].scope: Invalid value: "Namespaces": must be Cluster for kinds of rbac.authorization.k8s.io: only then can ` +
					`the operator revoke rights in every namespace where it granted them`,
				`propagation.kinds[5].scope: Invalid value: "Auto": must be Cluster for kinds of rbac.authorization.k8s.io: only then can ` +
					`the operator revoke rights in every namespace where it granted them`,
			},
		},
		"RetryOrder": {
			reason: "min may not exceed max",
			body:   "propagation: {retry: {min: 2s, max: 1s}}\n",
			want:   []string{`propagation.retry.max: Invalid value: "1s": must be at least min, 2s`},
		},
		"Controllers": {
			reason: "unknown names are refused",
			body:   "controllers: [\"*\", -billing, access, tenant, \"-*\"]\n",
			want: []string{
				`controllers[3]: Invalid value: "tenant": must be *, a controller's name, or -name: lnamespace, access, subnamespace, hierarchy, ` +
					`propagation, distribution, billing`,
				`controllers[4]: Invalid value: "-*": must be *, a controller's name, or -name: lnamespace, access, subnamespace, hierarchy, ` +
					`propagation, distribution, billing`,
			},
		},
	}.check(t)
}
