package controlplane

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// checkServer returns a check that an API server is ready for requests; "" is the first one.
func (cp *ControlPlane) checkServer(address string) (func(context.Context) error, error) {
	config := cp.Config(Admin)
	config.Host = cmp.Or(address, config.Host)
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of the API server: %w", err)
	}
	return process.HTTPOK(c, config.Host+"/readyz"), nil
}

// checkControllers returns a check that the controller manager works: the default ServiceAccount is there, and the aggregated ClusterRoles,
// which are empty at first, have rules.
func (cp *ControlPlane) checkControllers() (func(context.Context) error, error) {
	c, err := kubernetes.NewForConfig(cp.Config(Admin))
	if err != nil {
		return nil, fmt.Errorf("making a client of the API server: %w", err)
	}
	return func(ctx context.Context) error {
		if _, err := c.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return err
		}
		for _, name := range []string{"admin", "edit", "view"} {
			role, err := c.RbacV1().ClusterRoles().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if len(role.Rules) == 0 {
				return fmt.Errorf("ClusterRole %s has no rules yet", name)
			}
		}
		return nil
	}, nil
}

// Ready waits until the API server and the controllers work, for callers that have restarted one of them.
func (cp *ControlPlane) Ready(ctx context.Context) error {
	serves, err := cp.checkServer("")
	if err != nil {
		return err
	}
	if err := cp.APIServer.WaitReady(ctx, serves); err != nil || cp.Controllers == nil {
		return err
	}
	controls, err := cp.checkControllers()
	if err != nil {
		return err
	}
	return cp.Controllers.WaitReady(ctx, controls)
}
