package migrate

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/warren-tenancy/warren/internal/copies"
)

func TestErrorsThatEndARun(t *testing.T) {
	cause := errors.New("patch of Secret org/db: denied")
	for name, c := range map[string]struct {
		options options
		stopped bool
		want    string
	}{
		"MIG-M2 an error of --apply states that the peer still runs; it names the command to repeat, and --undo": {options{apply: true}, false,
			"HNC still runs. Correct this error, and give the same command again (kubectl warren migrate hnc --apply), or take back what was " +
				"written with --undo"},
		"MIG-M2 an error of --apply states that the peer is stopped; it names the command to repeat, and --undo": {options{apply: true}, true,
			"HNC is stopped. Correct this error, and give the same command again (kubectl warren migrate hnc --apply), or start HNC again " +
				"with --undo"},
		"MIG-M2 an error of --finish states that the peer is stopped, and names the command to repeat": {options{finish: true}, true,
			"HNC is stopped. Correct this error, and give the same command again (kubectl warren migrate hnc --finish)"},
		"MIG-M2 an error of --undo states whether the peer runs, and names the command to repeat": {options{undo: true}, false,
			"HNC still runs. Correct this error, and give the same command again (kubectl warren migrate hnc --undo)"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(cause.Error()+"\n"+c.want, c.options.withRecoveryAdvice(cause, hncPeer, c.stopped).Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatARunWaitsFor(t *testing.T) {
	t.Run("MIG-M3 a run names the Deployment whose Pods it awaits, and a Tenant that was deleted or has a reserved name", func(t *testing.T) {
		s := hncSite(copies.All, hncPropagate)
		s.Peer.Record, s.Peer.Deployments[0].Running = &Record{}, 1
		x := &executor{reader: &reader{peer: hncPeer, peerNamespace: "hnc-system"}}
		const want = "HNC to stop: Deployment peer/manager still has Pods (kubectl get pods -n hnc-system)"
		if got := x.reasonToWait([]Step{{Phase: Sources}}, s.estate(s.Cluster), s.Cluster); got != want {
			t.Error(got)
		}
		x.tenants = []string{"oil"}
		estate := s.estate(s.Cluster)
		const deleted = "tenant oil can't be migrated any more: it was deleted; give the command again"
		if err := x.lostTenant(estate); err == nil || err.Error() != deleted {
			t.Error(err)
		}
		estate.Gaps = []Gap{{"Tenant oil", "its name is reserved"}}
		if err := x.lostTenant(estate); err == nil || err.Error() != "tenant oil can't be migrated any more: its name is reserved" {
			t.Error(err)
		}
	})
}

func TestFlagThatIsNoExpression(t *testing.T) {
	t.Run("MIG-M3 the error names a flag of HNC that is no regular expression, and its Deployment", func(t *testing.T) {
		s := hncSite(copies.All, hncPropagate)
		s.Peer.Deployments[0].Args = []string{"--included-namespace-regex=("}
		_, err := settingsOfHNC(s.Peer.Deployments)
		const want = "flag --included-namespace-regex of Deployment peer/manager is no regular expression, so the namespaces that " +
			"HNC manages are not known; correct the flag: error parsing regexp: missing closing ): `^($`"
		if err == nil || err.Error() != want {
			t.Error(err)
		}
	})
}

func TestModeRemoveIsNotCalledOptIn(t *testing.T) {
	for mode, want := range map[copies.KindMode]string{
		copies.Remove: "propagation.kinds has it in mode Remove: set mode All",
		copies.OptIn:  "propagation.kinds has it in mode OptIn: the present sources get label",
	} {
		found := false
		for _, gap := range hncSite(mode, hncPropagate).plan().Gaps {
			found = found || gap.What == "mode Propagate of secrets" && strings.HasPrefix(gap.Instead, want)
		}
		if !found {
			t.Errorf("%s: no gap has %q", mode, want)
		}
	}
}

func TestUndoneNamesAnOperatorThatDoesNotRun(t *testing.T) {
	for stopped, want := range map[bool]string{
		false: "The migration is undone, and HNC is started",
		true:  "The migration is undone. HNC does not run: its Deployments are missing, or have 0 replicas",
	} {
		if got := describeUndone("HNC", stopped); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
