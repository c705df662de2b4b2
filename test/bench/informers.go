package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/warren-tenancy/warren/test/build"
)

const (
	kibibyte = 1 << 10
	// The memory that informers by namespace may use, in bytes: at rest, for each object, and for each watch.
	informersBase, informersObject, informersWatch = 64 * mebibyte, 1 * kibibyte, 48 * kibibyte
	// labelledObject is how many bytes one object may take if only its metadata is held.
	labelledObject = 2 * kibibyte
	// inEach is the number of Secrets that informers watch in each namespace.
	inEach = 10
)

// watchedName returns the name of a namespace that informers watch, and that belongs to no tree.
func watchedName(i int) string { return fmt.Sprintf("bench-w%04d", i) }

// informersBench measures informers by namespace beside informers of other kinds.
type informersBench struct{ *bench }

// measureInformers measures what informers by namespace cost, by themselves and in the operator, and how soon they follow RBAC. It
// takes long, so it prints each line when it is known.
func measureInformers(ctx context.Context, on *bench) ([]result, error) {
	b := informersBench{on}
	sizes := []int{1, 100, 1000}
	if b.scale.small {
		sizes = []int{1, 10, 50}
	}
	largest, made := sizes[len(sizes)-1], 0
	var steps []func(context.Context) ([]result, error)
	for _, n := range sizes {
		steps = append(steps, func(ctx context.Context) ([]result, error) {
			if err := b.plantWatched(ctx, made, n); err != nil {
				return nil, err
			}
			made = n
			return b.compareInformers(ctx, n, n == largest)
		})
	}
	steps = append(steps,
		func(ctx context.Context) ([]result, error) { return b.followRights(ctx, largest) },
		func(ctx context.Context) ([]result, error) { return b.operatorInNamespaces(ctx, largest) },
		b.compareSinks,
		b.holdLabelled)
	passed := true
	for _, step := range steps {
		results, err := step(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range results {
			passed = b.scale.tell(r) && passed
		}
	}
	return []result{{id: "informers", text: "all budgets", passed: passed, counted: true}}, nil
}

// plantWatched makes namespaces with Secrets of one KiB until there are n of them, of which made exist already.
func (b informersBench) plantWatched(ctx context.Context, made, n int) error {
	return inParallel(ctx, n-made, func(ctx context.Context, i int) error {
		name := watchedName(made + i)
		if err := b.Admin().Create(ctx, build.Namespace(name)); err != nil {
			return err
		}
		for j := range inEach {
			s := newSecret(fmt.Sprintf("s-%d", j), "a")
			s.Namespace, s.Labels = name, map[string]string{"bench": "watched"}
			if err := b.Admin().Create(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
}

// compareInformers measures each way of holding the same objects, one after the other. It judges only the watchset's informers by
// namespace: their memory and, if rests is set, their requests at rest.
func (b informersBench) compareInformers(ctx context.Context, n int, rests bool) ([]result, error) {
	h := holding{Access: b.Access, User: operatorUser, Selector: "bench=watched", Objects: n * inEach}
	for i := range n {
		h.Namespaces = append(h.Namespaces, watchedName(i))
	}
	var results []result
	for _, how := range []string{holdNothing, setOfCluster, cacheOfCluster, cacheOfNamespaces, setOfNamespaces} {
		h.How, h.Idle = how, 2*time.Second
		if rests && how == setOfNamespaces {
			h.Idle = b.scale.idle
		}
		c, err := h.measure(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s of %d namespaces: %w", how, n, err)
		}
		results = append(results, result{id: "informers", passed: true, told: true, text: fmt.Sprintf(
			"%4d namespaces, %5d Secrets, %-30s watches %4d, other requests %3d, received %7.2f MiB, heap %6.1f MiB, resident %6.1f MiB, at most "+
				"%6.1f MiB, synced in %.1fs",
			n, h.Objects, how, c.Watches, c.Requests, float64(c.Received)/mebibyte, c.Heap/mebibyte, c.Resident/mebibyte, c.Peak/mebibyte,
			c.Synced.Seconds())})
		if how != setOfNamespaces {
			continue
		}
		allowed := informersBase + informersObject*float64(h.Objects) + informersWatch*float64(n)
		results = append(results, result{id: "informers", passed: c.Resident <= allowed,
			text: fmt.Sprintf("memory of %d watches %.1f MiB budget %.1f MiB", n, c.Resident/mebibyte, allowed/mebibyte)})
		if rests {
			results = append(results, result{id: "informers", counted: true, passed: c.Watches >= int64(n) && c.Asked == 0,
				text: fmt.Sprintf("at rest, %d watches, %s: other requests %d budget 0", n, h.Idle, c.Asked)})
		}
	}
	return results, nil
}

// holdLabelled measures INF-I40: the memory for informers that hold some of many Secrets, and of these only the metadata.
func (b informersBench) holdLabelled(ctx context.Context) ([]result, error) {
	const namespace = "bench-labelled"
	labelled, all := 10000, 50000
	if b.scale.small {
		labelled, all = 100, 500
	}
	if err := b.Admin().Create(ctx, build.Namespace(namespace)); err != nil {
		return nil, err
	}
	content := bytes.Repeat([]byte("x"), 10*kibibyte)
	err := inParallel(ctx, all, func(ctx context.Context, i int) error {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("s-%d", i)},
			Data: map[string][]byte{"key": content}}
		if i < labelled {
			s.Labels = map[string]string{"bench": "labelled"}
		}
		return b.Admin().Create(ctx, s)
	})
	if err != nil {
		return nil, err
	}
	h := holding{Access: b.Access, User: operatorUser, How: setOfNamespaces, Namespaces: []string{namespace},
		Selector: "bench=none", Idle: time.Second}
	none, err := h.measure(ctx)
	if err != nil {
		return nil, err
	}
	h.Selector, h.Objects = "bench=labelled", labelled
	some, err := h.measure(ctx)
	each := (some.Heap - none.Heap) / float64(labelled)
	return []result{{id: "INF-I40", passed: each <= labelledObject, text: fmt.Sprintf(
		"%d of %d Secrets of 10 KiB: %.2f KiB each over the base, budget %.2f KiB; resident %.1f MiB, at most %.1f MiB, received %.1f MiB",
		labelled, all, each/kibibyte, float64(labelledObject)/kibibyte, some.Resident/mebibyte, some.Peak/mebibyte,
		float64(some.Received)/mebibyte)}}, err
}

// operatorInNamespaces measures the memory of the operator in scope Namespaces, with two watches and copies of all sources in each
// namespace.
func (b informersBench) operatorInNamespaces(ctx context.Context, children int) ([]result, error) {
	b.writeConfig(fmt.Sprintf("propagation: {kinds: [{kind: Secret, scope: Namespaces}]}\ninformers: {maxInformers: %d, maxNamespaces: %d}",
		4*children+100, 2*children+100))
	b.scale.children = children
	if err := b.makeCopies(ctx); err != nil {
		return nil, err
	}
	resident, err := b.residentMemory(ctx)
	if err != nil {
		return nil, err
	}
	peak, err := peakMemory(b.Operator.Process().PID())
	if err != nil {
		return nil, err
	}
	m, err := b.Operator.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	watches := m.Value("watchset_informers", map[string]string{"scope": "namespace", "state": "Synced"})
	copies := b.scale.sources * children
	allowed := informersBase + informersObject*float64(copies+b.scale.sources) + informersWatch*watches
	return []result{{id: "informers", passed: resident <= allowed && watches >= float64(2*children), text: fmt.Sprintf(
		"operator, scope Namespaces: %.0f watches, %d copies: memory %.1f MiB, at most %.1f MiB; budget %.1f MiB",
		watches, copies, resident/mebibyte, peak/mebibyte, allowed/mebibyte)}}, nil
}

// measure has a separate process hold the objects, and returns what that cost.
func (h holding) measure(ctx context.Context) (cost, error) { return h.measureDuring(ctx, nil) }

// measureDuring is measure with a change, if change is not nil. Once the process holds all objects, change makes the changes that it
// waits for.
func (h holding) measureDuring(ctx context.Context, change func(context.Context) error) (c cost, err error) {
	text, err := json.Marshal(h)
	if err != nil {
		return cost{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return cost{}, err
	}
	holder := exec.CommandContext(ctx, self, "-hold")
	holder.Stdin, holder.Stderr = bytes.NewReader(text), os.Stderr
	out, err := holder.StdoutPipe()
	if err != nil {
		return cost{}, err
	}
	if err := holder.Start(); err != nil {
		return cost{}, fmt.Errorf("holding informers in a process of its own: %w", err)
	}
	told := json.NewDecoder(out)
	if change != nil {
		err = told.Decode(&c)
		if err == nil {
			err = change(ctx)
		}
	}
	if err == nil {
		err = told.Decode(&c)
	}
	if err != nil {
		_ = holder.Process.Kill()
	}
	if ended := holder.Wait(); err == nil {
		err = ended
	}
	if err != nil {
		return cost{}, fmt.Errorf("holding informers in a process of its own: %w", err)
	}
	return c, nil
}
