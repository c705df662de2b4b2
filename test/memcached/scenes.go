package memcached

import (
	"context"
	"fmt"
	"strings"
	"time"
)

type scene struct {
	story string
	play  func(context.Context, *stage) error
}

const (
	bindNeeds  = "create rolebinding memcached --clusterrole=memcached-operator-needs --serviceaccount=memcached-system:memcached-operator -n "
	showStates = "get memcacheds -A --no-headers -o " +
		"custom-columns=NAME:.metadata.name,STATE:.status.state.status,MESSAGE:.status.state.message"
	denied = "get memcached memcached-sample-denied -n denied -o jsonpath={.status.state.status}:{.status.state.message}:{.status.nodes}"
)

func scenes() []scene {
	return []scene{
		{"1. The operator is ready without any right to what it deploys.", start},
		{"2. Two RoleBindings, and it deploys in two namespaces.", deployWhereAllowed},
		{"3. In a third namespace it may not, says so, and goes on.", sayWhatIsDenied},
		{"4. What is forbidden costs next to nothing.", costLittle},
		{"5. A RoleBinding there, and it deploys by itself: nobody touches the Memcached.", takeUpARight},
		{"6. The new informer's events arrive: a Deployment that is scaled by hand is put right.", putRight},
		{"7. The right goes: the operator says so, and takes nothing for gone that it can't see.", loseARight},
		{"8. Other namespaces go on meanwhile.", goOnElsewhere},
		{"9. A Memcached whose namespace is forbidden is deleted: nobody asks for that namespace again.", letGo},
		{"10. One cluster-wide binding takes the place of the others: nothing is written.", widen},
		{"11. It may see and not write: it says so, and deploys when it may, though nobody tells it.", retryWrites},
	}
}

func start(ctx context.Context, s *stage) error {
	s.checked++
	s.say("  ready")
	for _, namespace := range []string{"allowed-one", "allowed-two", "denied"} {
		if err := s.do(ctx, "create namespace "+namespace); err != nil {
			return err
		}
	}
	return s.do(ctx, "create clusterrolebinding memcached-observer --clusterrole=rbac-observer "+
		"--serviceaccount=memcached-system:memcached-operator")
}

func deployWhereAllowed(ctx context.Context, s *stage) error {
	for _, namespace := range []string{"allowed-one", "allowed-two"} {
		if err := s.do(ctx, bindNeeds+namespace); err != nil {
			return err
		}
	}
	if err := s.do(ctx, "apply -f "+s.config("samples.yaml")); err != nil {
		return err
	}
	if err := s.see(ctx, showStates, "Deployment memcached-sample-allowed-one successfully created",
		"Deployment memcached-sample-allowed-two successfully created"); err != nil {
		return err
	}
	for namespace, size := range map[string]int{"allowed-one": 2, "allowed-two": 3} {
		err := s.await(ctx, "get memcached -n "+namespace+" -o jsonpath={.items[0].status.nodes[*]}", func(answer string) string {
			if nodes := strings.Fields(answer); len(nodes) != size {
				return fmt.Sprintf("%d Pods are listed, want %d", len(nodes), size)
			}
			return ""
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func sayWhatIsDenied(ctx context.Context, s *stage) error {
	if err := s.do(ctx, "apply -f "+s.config("denied.yaml")); err != nil {
		return err
	}
	return s.see(ctx, denied, "Failed:Not permitted", "deployments.apps")
}

func costLittle(ctx context.Context, s *stage) error {
	return s.quiet(ctx, "denied", 10*time.Second, 8)
}

func takeUpARight(ctx context.Context, s *stage) error {
	if err := s.do(ctx, bindNeeds+"denied"); err != nil {
		return err
	}
	return s.see(ctx, denied, "Succeeded:Deployment memcached-sample-denied successfully created")
}

func putRight(ctx context.Context, s *stage) error {
	if err := s.do(ctx, "scale deployment memcached-sample-denied -n denied --replicas=3"); err != nil {
		return err
	}
	return s.await(ctx, "get deployment memcached-sample-denied -n denied -o jsonpath={.spec.replicas}", is("1"))
}

func loseARight(ctx context.Context, s *stage) error {
	if err := s.await(ctx, "get memcached memcached-sample-denied -n denied -o jsonpath={.status.nodes[*]}", isOneWord); err != nil {
		return err
	}
	if err := s.do(ctx, "delete rolebinding memcached -n denied"); err != nil {
		return err
	}
	if err := s.see(ctx, denied, "Failed:Not permitted", `:["memcached-sample-denied-`); err != nil {
		return err
	}
	return s.await(ctx, "get deployment memcached-sample-denied -n denied -o jsonpath={.spec.replicas}", is("1"))
}

func goOnElsewhere(ctx context.Context, s *stage) error {
	if err := s.do(ctx, `patch memcached memcached-sample-allowed-one -n allowed-one --type=merge -p {"spec":{"size":4}}`); err != nil {
		return err
	}
	return s.await(ctx, "get deployment memcached-sample-allowed-one -n allowed-one -o jsonpath={.spec.replicas}", is("4"))
}

func letGo(ctx context.Context, s *stage) error {
	if err := s.do(ctx, "delete memcached memcached-sample-denied -n denied --timeout=60s"); err != nil {
		return err
	}
	// The informers of this namespace stay for IdleGrace, and may ask for a review until then.
	if err := s.quiet(ctx, "denied", 35*time.Second, 4); err != nil {
		return err
	}
	return s.quiet(ctx, "denied", 5*time.Second, 0)
}

func widen(ctx context.Context, s *stage) error {
	const versions = "get memcacheds -A -o jsonpath={.items[*].metadata.resourceVersion}"
	if err := s.see(ctx, "get memcached memcached-sample-allowed-one -n allowed-one -o jsonpath={.status.nodes[3]}",
		"memcached-sample-allowed-one-"); err != nil {
		return err
	}
	before, err := s.kubectl(ctx, strings.Fields(versions)...)
	if err != nil {
		return err
	}
	if err := s.do(ctx, "create clusterrolebinding memcached-needs --clusterrole=memcached-operator-needs "+
		"--serviceaccount=memcached-system:memcached-operator"); err != nil {
		return err
	}
	for _, namespace := range []string{"allowed-one", "allowed-two"} {
		if err := s.do(ctx, "delete rolebinding memcached -n "+namespace); err != nil {
			return err
		}
	}
	if err := s.quiet(ctx, "allowed-one", 5*time.Second, 10); err != nil {
		return err
	}
	return s.await(ctx, versions, is(before))
}

func retryWrites(ctx context.Context, s *stage) error {
	for _, line := range []string{
		"delete clusterrolebinding memcached-needs",
		"create rolebinding memcached-sees --clusterrole=view --serviceaccount=memcached-system:memcached-operator -n denied",
		"apply -f " + s.config("denied.yaml"),
	} {
		if err := s.do(ctx, line); err != nil {
			return err
		}
	}
	if err := s.see(ctx, denied, "Failed:Not permitted", "cannot create resource"); err != nil {
		return err
	}
	if err := s.do(ctx, bindNeeds+"denied"); err != nil {
		return err
	}
	return s.see(ctx, denied, "Succeeded:Deployment memcached-sample-denied successfully created")
}

func is(want string) func(string) string {
	return func(answer string) string {
		if answer != want {
			return "want " + want
		}
		return ""
	}
}

func isOneWord(answer string) string {
	if len(strings.Fields(answer)) != 1 {
		return "want one name"
	}
	return ""
}
