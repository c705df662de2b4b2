//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// version is one version of the product: the folder of its sources, from which its own `make deploy` deploys it, and its image on the node.
type version struct{ name, dir, image string }

// current is the version of this clone.
func (s supplies) current() version {
	return version{name: "this version", dir: ".", image: "localhost/warren:e2e"}
}

// previous is the version that is deployed first, and to which the node goes back.
func (s supplies) previous() version {
	ref := os.Getenv("PREVIOUS")
	return version{name: "version " + ref, dir: filepath.Join(s.made, "previous"), image: "localhost/warren:previous"}
}

// imageFile is where the image of a version is kept until the node loads it.
func (s supplies) imageFile(v version) string {
	return filepath.Join(s.made, filepath.Base(v.image)+".tar")
}

// preparePrevious checks the previous version out into a clone of its own, and builds what needs the network.
func (s supplies) preparePrevious(ctx context.Context) error {
	ref := os.Getenv("PREVIOUS")
	if ref == "" {
		return errors.New("PREVIOUS is empty: it must name the tag or commit to upgrade from, as in make e2e-node PREVIOUS=v1.2.3")
	}
	v := s.previous()
	for _, command := range [][]string{
		{"git", "clone", "--quiet", "--shared", "--no-checkout", ".", v.dir},
		{"git", "-C", v.dir, "checkout", "--quiet", "--detach", ref},
		{"make", "-C", v.dir, "image", "IMG=" + v.image, "IMAGE_TAR=" + s.imageFile(v)},
		{filepath.Join(v.dir, "hack", "render.sh"), overlay, v.image},
	} {
		if err := prepareBy(ctx, command); err != nil {
			return err
		}
	}
	return nil
}
