package configfile_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/configfile"
)

const header = "apiVersion: config.tenancy.warren.dev/v1alpha1\nkind: OperatorConfiguration\n"

// mount is a directory laid out as the kubelet mounts a ConfigMap: file -> ..data/file, ..data -> ..N, and an update makes
// a new ..N and renames a new symlink over ..data.
type mount struct {
	t    *testing.T
	dir  string
	next int
}

func newMount(t *testing.T, content string) *mount {
	t.Helper()
	m := &mount{t: t, dir: t.TempDir()}
	m.swap(content)
	m.do(os.Symlink("..data/warren.yaml", m.path()))
	return m
}

func (m *mount) path() string { return filepath.Join(m.dir, "warren.yaml") }

func (m *mount) do(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *mount) swap(content string) {
	m.t.Helper()
	m.next++
	version := fmt.Sprintf("..%d", m.next)
	m.do(os.Mkdir(filepath.Join(m.dir, version), 0o700))
	m.do(os.WriteFile(filepath.Join(m.dir, version, "warren.yaml"), []byte(content), 0o600))
	m.do(os.Symlink(version, filepath.Join(m.dir, "..tmp")))
	m.do(os.Rename(filepath.Join(m.dir, "..tmp"), filepath.Join(m.dir, "..data")))
}

// follow opens a store on the mount and records its calls: one line for each hook, and one for each call of a subscriber.
func follow(t *testing.T, m *mount) (*configfile.Store, func() []string) {
	t.Helper()
	s, err := configfile.Open(m.path())
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	s.OnAccepted = func(a configfile.Accepted) {
		told = append(told, fmt.Sprintf("accepted, restart %v", a.RestartRequired))
	}
	s.OnRefused = func(err error) {
		told = append(told, "refused "+strings.ReplaceAll(err.Error(), m.path(), "f"))
	}
	s.Subscribe(func(old, current *config.OperatorConfiguration) {
		told = append(told, fmt.Sprintf("labels %v -> %v", old.Inheritance.Labels, current.Inheritance.Labels))
		if s.Current() != current {
			t.Error("a subscriber is called before the configuration is in force")
		}
	})
	return s, func() []string {
		out := told
		told = nil
		return out
	}
}

func poll(s *configfile.Store, times int) {
	for range times {
		s.Poll()
	}
}

func expect(t *testing.T, reason string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -want, +got:\n%s", reason, diff)
	}
}

func TestStoreFollowsTheFile(t *testing.T) {
	t.Run("a ConfigMap mount is swapped", func(t *testing.T) { // the part of SUB-F3 that needs no cluster
		m := newMount(t, header+"inheritance: {labels: [team]}\n")
		s, told := follow(t, m)
		poll(s, 3)
		expect(t, "nothing changed", told())

		m.swap(header + "inheritance: {labels: [team, env]}\n")
		poll(s, 1)
		expect(t, "a content that was seen once doesn't count", told())
		poll(s, 3)
		expect(t, "two polls agree", told(), "labels [team] -> [team env]", "accepted, restart []")
		if !s.Current().Inheritance.Labels.Match("env") {
			t.Error("the new labels are not in force")
		}
	})

	t.Run("a content takes away too much, or can't be judged yet", func(t *testing.T) { // the part of SUB-F10 that needs no cluster
		m := newMount(t, header+"inheritance: {labels: [team]}\n")
		s, told := follow(t, m)
		verdict, asked := error(configfile.Unjudged{Cause: errors.New("no answer")}), 0
		s.Check = func(old, now *config.OperatorConfiguration) error {
			if asked++; !old.Inheritance.Labels.Match("team") || now.Inheritance.Labels.Match("team") {
				t.Errorf("asked about %v -> %v", old.Inheritance.Labels, now.Inheritance.Labels)
			}
			return verdict
		}
		m.swap(header + "inheritance: {labels: [env]}\n")
		poll(s, 9)
		expect(t, "it rests before it is judged again", told(), "refused no answer")
		verdict = errors.New("too much")
		m.swap(header + "inheritance: {labels: [env, tier]}\n")
		poll(s, 9)
		expect(t, "another content is judged, once", told(), "refused too much")
		verdict = nil
		m.swap(header + "inheritance: {labels: [tier]}\n")
		poll(s, 9)
		expect(t, "what may come into force does", told(), "labels [team] -> [tier]", "accepted, restart []")
		if asked != 3 {
			t.Errorf("asked %d times, want 3", asked)
		}
	})

	t.Run("SUB-F12 a content is taken back while it is judged", func(t *testing.T) {
		m := newMount(t, header+"inheritance: {labels: [team]}\n")
		s, told := follow(t, m)
		s.Check = func(_, now *config.OperatorConfiguration) error {
			if now.Inheritance.Labels.Match("env") {
				m.swap(header + "inheritance: {labels: [team]}\n")
			}
			return nil
		}
		m.swap(header + "inheritance: {labels: [env]}\n")
		poll(s, 9)
		expect(t, "what is in force stays", told())
		m.swap(header + "inheritance: {labels: [tier]}\n")
		poll(s, 9)
		expect(t, "and later changes are taken", told(), "labels [team] -> [tier]", "accepted, restart []")
	})

	t.Run("the file is emptied or deleted", func(t *testing.T) { // SUB-F3
		m := newMount(t, header+"inheritance: {labels: [team]}\n")
		s, told := follow(t, m)
		before := s.Current()

		m.swap("")
		poll(s, 5)
		expect(t, "one line for the content", told(), "refused f: the file is empty: it must say at least apiVersion: config.tenancy.warren.dev/v1alpha1 and kind: OperatorConfiguration")
		m.do(os.Remove(m.path()))
		poll(s, 5)
		expect(t, "one line for the absence", told(), "refused f: there is no such file: create it, or leave out --config to run with the defaults")
		if s.Current() != before {
			t.Error("another configuration is in force")
		}

		m.do(os.Symlink("..data/warren.yaml", m.path()))
		m.swap(header + "inheritance: {labels: [team]}\n")
		poll(s, 5)
		expect(t, "the old content is good again, and changes nothing", told(), "accepted, restart []")
	})

	t.Run("an invalid content while running", func(t *testing.T) { // SUB-F2
		m := newMount(t, header)
		s, told := follow(t, m)
		before := s.Current()
		m.swap(header + "sudo: {mode: a}\nconcurrency: 0\n")
		poll(s, 5)
		expect(t, "one call with all problems", told(), "refused f: sudo.mode: Invalid value: \"a\": must be Legacy, Constrained or Auto\nf: concurrency: Invalid value: 0: must be from 1 to 256")
		if s.Current() != before {
			t.Error("another configuration is in force")
		}
		m.swap(header + "sudo: {mode: b}\n")
		poll(s, 5)
		expect(t, "another content, another line", told(), `refused f: sudo.mode: Invalid value: "b": must be Legacy, Constrained or Auto`)
	})

	t.Run("a field that needs a restart beside one that doesn't", func(t *testing.T) { // SUB-F6
		m := newMount(t, header)
		s, told := follow(t, m)
		m.swap(header + "billing: {driver: sqlite}\ninheritance: {labels: [team]}\n")
		poll(s, 2)
		expect(t, "labels in force, driver named", told(), "labels [pod-security.kubernetes.io/*] -> [team]", "accepted, restart [billing.driver]")
		if got := s.Current().Billing.Driver; got != config.DriverNone {
			t.Errorf("driver %s is in force before a restart", got)
		}
		m.swap(header + "billing: {driver: sqlite}\n")
		poll(s, 2)
		expect(t, "a later change still names what waits for a restart", told(), "labels [team] -> [pod-security.kubernetes.io/*]", "accepted, restart [billing.driver]")
		m.swap(header)
		poll(s, 2)
		expect(t, "the file says again what runs", told(), "accepted, restart []")
	})

	t.Run("a file that is being written", func(t *testing.T) {
		m := newMount(t, header)
		s, told := follow(t, m)
		for _, content := range []string{header + "inheritance: {labels: [a", header + "inheritance: {labels: [a]}\n", header} {
			m.swap(content)
			poll(s, 1)
		}
		poll(s, 5)
		expect(t, "what no two polls saw doesn't count", told())
	})
}

func TestOpen(t *testing.T) {
	t.Run("without a file", func(t *testing.T) {
		s, err := configfile.Open("", config.WithFeatureGates(map[string]bool{config.PropagateGenerated: true}))
		if err != nil {
			t.Fatal(err)
		}
		want := config.Default()
		want.FeatureGates[config.PropagateGenerated] = true
		s.Poll()
		if diff := cmp.Diff(want, s.Current()); diff != "" {
			t.Errorf("the defaults and the flag hold: -want, +got:\n%s", diff)
		}
	})
	t.Run("an invalid file", func(t *testing.T) {
		m := newMount(t, header+"concurrency: 0\n")
		_, err := configfile.Open(m.path())
		if err == nil || err.Error() != m.path()+": concurrency: Invalid value: 0: must be from 1 to 256" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("warnings", func(t *testing.T) {
		m := newMount(t, header+"controllers: []\n")
		s, err := configfile.Open(m.path())
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Started().Warnings) != 1 || len(s.Started().Hash) != 64 {
			t.Errorf("got %+v, want one warning and a hash", s.Started())
		}
	})
}

func TestStartPolls(t *testing.T) {
	m := newMount(t, header)
	s, err := configfile.Open(m.path())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	s.Interval = time.Millisecond
	s.OnAccepted = func(configfile.Accepted) { stop() }
	m.swap(header + "concurrency: 3\n")
	if err := s.Start(ctx); err != nil {
		t.Errorf("Start ends with its context: %v", err)
	}
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Error("the new content was not accepted within 30 s")
	}
}
