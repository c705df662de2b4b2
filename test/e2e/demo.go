//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// demoUntil plays the demo's story up to a scene, that one included.
func (r *run) demoUntil(scene string) func(context.Context) error {
	return func(ctx context.Context) error { return r.play(ctx, "-until="+scene) }
}

// demoAfter plays what follows that scene.
func (r *run) demoAfter(scene string) func(context.Context) error {
	return func(ctx context.Context) error { return r.play(ctx, "-after="+scene) }
}

func (r *run) play(ctx context.Context, part string) error {
	place := filepath.Join(r.dir, "world.json")
	if err := os.WriteFile(place, r.world.Bytes(), 0o600); err != nil {
		return fmt.Errorf("telling the demo where to play: %w", err)
	}
	answer, err := exec.CommandContext(ctx, r.demo(), "-connect="+place, part).CombinedOutput()
	text := strings.TrimSpace(string(answer))
	if err != nil {
		return fmt.Errorf("the demo (%s): %w:\n%s", part, err, text)
	}
	r.printSeen("the demo %s: %s", part, text[strings.LastIndex(text, "\n")+1:])
	return nil
}
