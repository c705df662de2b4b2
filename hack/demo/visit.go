package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/warren-tenancy/warren/test/devcluster"
)

// playElsewhere plays a part of the story on a control plane that another program started and will stop. The file has what
// devcluster.World.Bytes returned there.
func playElsewhere(ctx context.Context, file, after, until string) error {
	scenes, err := selectScenes(fullStory(), after, until)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading where to play: %w", err)
	}
	world, err := devcluster.Connect(data)
	if err != nil {
		return err
	}
	root, err := devcluster.Root()
	if err != nil {
		return err
	}
	if err := os.Chdir(root); err != nil { // the names of files in the script are relative to this folder
		return fmt.Errorf("changing into the clone: %w", err)
	}
	p := &player{root: root, world: world}
	if err := p.play(ctx, scenes); err != nil {
		return err
	}
	fmt.Printf("\nAll %d expectations held. %s.\n", p.checked, strings.Join(p.times, ", "))
	return nil
}

// selectScenes returns the scenes that come after the scene called after, up to and including the scene called until. An empty name means
// the story's beginning or end.
func selectScenes(scenes []scene, after, until string) ([]scene, error) {
	from, to := 0, len(scenes)
	for name, end := range map[string]*int{after: &from, until: &to} {
		if name == "" {
			continue
		}
		i := slices.IndexFunc(scenes, func(s scene) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("the story has no scene %q", name)
		}
		*end = i + 1
	}
	return scenes[from:max(from, to)], nil
}
