package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/warren-tenancy/warren/test/devcluster"
)

// player plays scenes: it prints each command as one could type it, runs it, prints the answer and checks it.
type player struct {
	root    string
	world   *devcluster.World
	ledger  warehouse
	checked int
	times   []string // how long each scene took, for the closing line
	ended   time.Time
}

func (p *player) play(ctx context.Context, scenes []scene) error {
	for _, s := range scenes {
		began := time.Now()
		fmt.Printf("\n%s\n", s.story)
		for _, step := range s.steps {
			if err := p.runStep(ctx, step); err != nil {
				return err
			}
		}
		p.times = append(p.times, s.name+" "+seconds(time.Since(began)))
	}
	return nil
}

// runStep runs a command and prints its answer. It repeats the command until the answer is as expected, or the step's time is over.
func (p *player) runStep(ctx context.Context, s step) error {
	ask, err := p.prepare(ctx, s)
	if err != nil {
		return err
	}
	before, began := p.ended, time.Now()
	var answer, wrong string
	for tries := 1; ; tries++ {
		stdout, stderr, code := ask()
		p.ended = time.Now()
		answer = strings.TrimSpace(stdout + stderr)
		wrong = s.want.checkAnswer(answer, code)
		if wrong == "" || time.Since(began) > s.want.within || ctx.Err() != nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	fmt.Println(indentLines(answer, "    "))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if wrong != "" {
		return fmt.Errorf("%s, as %s: %s", s.command, s.user, wrong)
	}
	if s.want.timed {
		fmt.Printf("    (after %.2f s)\n", p.ended.Sub(before).Seconds())
	}
	p.checked++
	return nil
}

// prepare prints the command, and returns the function that runs it.
func (p *player) prepare(ctx context.Context, s step) (ask func() (stdout, stderr string, code int), err error) {
	if s.user == finance {
		fmt.Printf("\n  %s> %s\n", s.user, s.command)
		return func() (string, string, int) { return p.ledger.query(ctx, s.command) }, nil
	}
	command, err := p.substitute(ctx, s)
	if err != nil {
		return nil, err
	}
	args, err := splitWords(command)
	if err != nil {
		return nil, err
	}
	fmt.Printf("\n  %s$ kubectl %s\n", s.user, s.command)
	return func() (string, string, int) { return p.world.Kubectl(ctx, s.user, args...) }, p.showFile(args)
}

// substitute replaces $(kubectl …) in a command by what that kubectl prints, as a shell does.
func (p *player) substitute(ctx context.Context, s step) (string, error) {
	before, rest, found := strings.Cut(s.command, "$(kubectl ")
	if !found {
		return s.command, nil
	}
	inner, after, closed := strings.Cut(rest, ")")
	if !closed {
		return "", fmt.Errorf("the command %q has a parenthesis that isn't closed", s.command)
	}
	stdout, stderr, code := p.world.Kubectl(ctx, s.user, strings.Fields(inner)...)
	if code != 0 {
		return "", fmt.Errorf("kubectl %s, as %s: exit code %d: %s", inner, s.user, code, strings.TrimSpace(stderr))
	}
	return before + strings.TrimSpace(stdout) + after, nil
}

// showFile prints the manifests that a command names by -f.
func (p *player) showFile(args []string) error {
	for i, arg := range args {
		if arg != "-f" {
			continue
		}
		if i+1 == len(args) {
			return errors.New("the command ends with -f: name a file")
		}
		content, err := os.ReadFile(filepath.Join(p.root, args[i+1]))
		if err != nil {
			return fmt.Errorf("reading a manifest of the demo: %w", err)
		}
		fmt.Println(indentLines(strings.TrimSpace(string(content)), "    | "))
	}
	return nil
}

// checkAnswer describes what is wrong with an answer, nothing if it is as expected.
func (w want) checkAnswer(answer string, code int) string {
	switch {
	case code < 0:
		return "it didn't run: " + answer
	case w.refused && code == 0:
		return "it was allowed, and must be refused"
	case !w.refused && code != 0:
		return fmt.Sprintf("exit code %d, expected 0", code)
	}
	for _, fragment := range w.has {
		if !strings.Contains(answer, fragment) {
			return fmt.Sprintf("the answer lacks %q", fragment)
		}
	}
	for _, fragment := range w.hasNot {
		if strings.Contains(answer, fragment) {
			return fmt.Sprintf("the answer has %q", fragment)
		}
	}
	return ""
}

// splitWords splits a command as a shell does, as far as the script needs it: at spaces, but not in single quotes.
func splitWords(command string) ([]string, error) {
	parts := strings.Split(command, "'")
	if len(parts)%2 == 0 {
		return nil, fmt.Errorf("the command %q has a quote that isn't closed", command)
	}
	var args []string
	for i, part := range parts {
		if i%2 == 1 {
			args = append(args, part)
		} else {
			args = append(args, strings.Fields(part)...)
		}
	}
	return args, nil
}

func indentLines(text, prefix string) string {
	return prefix + strings.ReplaceAll(text, "\n", "\n"+prefix)
}
