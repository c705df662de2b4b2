package doctor

import (
	"errors"
	"testing"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

func TestJudgeServer(t *testing.T) {
	mode := func(m v1alpha1.SudoMode) file {
		c := &config.OperatorConfiguration{}
		c.Sudo.Mode = m
		return file{config: c}
	}
	for name, c := range map[string]struct {
		minor int
		file  file
		want  Status
	}{
		"too old":                      {33, mode(v1alpha1.SudoLegacy), Error},
		"the oldest":                   {34, mode(v1alpha1.SudoLegacy), OK},
		"too old for Constrained":      {35, mode(v1alpha1.SudoConstrained), Error},
		"Auto finds out by itself":     {35, mode(config.SudoAuto), OK},
		"Constrained":                  {36, mode(v1alpha1.SudoConstrained), OK},
		"the configuration is unknown": {36, file{unknown: errors.New("forbidden")}, Warning},
	} {
		if got := judgeServer("v1.x", c.minor, c.file); got.Status != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The refusals were seen on API server 1.36.3.
func TestJudgeLevel(t *testing.T) {
	for name, c := range map[string]struct {
		answer error
		want   Status
		says   string
	}{
		"accepted":  {nil, Warning, "the default level is privileged: who controls a namespace without the label enforce reaches the nodes"},
		"baseline":  {errors.New(`pods "warren-doctor" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostPID=true), privileged`), OK, "pods are baseline by default"},
		"forbidden": {errors.New(`pods is forbidden: User "alice" cannot create`), Warning, `the default level is not known: a privileged pod in default was refused for another reason: pods is forbidden: User "alice" cannot create`},
	} {
		if got := judgeLevel("default", c.answer); got.Status != c.want || got.Message != c.says {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestJudgeWebhook(t *testing.T) {
	for name, c := range map[string]struct {
		answer error
		want   Status
	}{
		"allowed":     {nil, OK},
		"refused":     {errors.New(`admission webhook "lnamespaces.tenancy.warren.dev" denied the request: no`), OK},
		"away":        {errors.New(`Internal error occurred: failed calling webhook "lnamespaces.tenancy.warren.dev": connection refused`), Error},
		"not allowed": {errors.New(`lnamespaces is forbidden: User "alice" cannot create`), Warning},
	} {
		if got := judgeWebhook(c.answer); got.Status != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestFew(t *testing.T) {
	if got := few([]string{"a", "b", "c", "d", "e", "f", "g"}); got != "a, b, c, d, e and 2 more" {
		t.Error(got)
	}
}
