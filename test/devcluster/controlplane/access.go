package controlplane

import (
	"fmt"
	"net/url"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Access is what a client of a control plane needs. It can be sent to another process.
type Access struct {
	// Dir holds all files: logs, kubeconfigs, etcd's data.
	Dir string
	// KubectlPath is the path of the kubectl of this version.
	KubectlPath string
}

// Kubeconfig returns the path of a user's kubeconfig. It has the CA in it and can be copied elsewhere.
func (a Access) Kubeconfig(user string) string {
	if user == Operator {
		user = "operator"
	}
	// A user's name may have any character, even a slash.
	return filepath.Join(a.Dir, "kubeconfigs", url.PathEscape(user)+".kubeconfig")
}

// Config returns a client configuration of a user, without client-side throttling. It panics if the user doesn't exist: that is the
// caller's mistake.
func (a Access) Config(user string) *rest.Config {
	config, err := clientcmd.BuildConfigFromFlags("", a.Kubeconfig(user))
	if err != nil {
		panic(fmt.Sprintf("control plane: no access for user %q (%v): add it to Options.Users", user, err))
	}
	config.QPS = -1
	return config
}

// AuditLog returns the path of the audit log, which exists only with Options.Audit.
func (a Access) AuditLog() string { return filepath.Join(a.Dir, "audit.log") }

// LogFile returns the path of a component's log, such as that of kube-apiserver.
func (a Access) LogFile(component string) string { return filepath.Join(a.Dir, component+".log") }
