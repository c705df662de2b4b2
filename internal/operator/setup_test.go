package operator

import (
	"testing"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/controllers/access"
)

func TestWithoutOneController(t *testing.T) {
	for _, off := range config.ControllerNames() {
		t.Run("SUB-F16 nothing waits for a controller that is switched off: "+off, func(t *testing.T) {
			c := &config.OperatorConfiguration{Controllers: []string{config.EveryController, "-" + off}}
			s := &setup{config: c, access: &access.Reconciler{}, revoked: newRevoked(c)}
			closed := false
			select {
			case <-s.revoked:
				closed = true
			default:
			}
			if isOff := off == config.ControllerAccess; closed != isOff || (s.withdrawer() == nil) != isOff {
				t.Errorf("revocations are over: %t, rights are withdrawn: %t", closed, s.withdrawer() != nil)
			}
		})
	}
}
