package main

import (
	"fmt"

	"github.com/distribution/reference"
)

// parseName returns an error if the name has no tag, or has a digest. No tag means `latest`, which a kubelet pulls at every start, and an
// image that was loaded from a file can't be pulled.
func parseName(name string) (reference.NamedTagged, error) {
	if name == "" {
		return nil, fmt.Errorf("the image has no name: give one with a tag, such as registry.example/warren:v1")
	}
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return nil, fmt.Errorf("the image's name is %q: %w; give one such as registry.example/warren:v1", name, err)
	}
	tagged, ok := named.(reference.NamedTagged)
	if _, digested := named.(reference.Digested); !ok || digested {
		return nil, fmt.Errorf("the image's name is %q: must end in a tag, such as registry.example/warren:v1", name)
	}
	return tagged, nil
}
