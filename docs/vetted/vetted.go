// Package vetted holds the lists of what the ClusterRole admin grants, one file for each minor version of Kubernetes, as they
// stand in the binaries. README.md describes how they come about.
package vetted

import "embed"

// Files are the lists, named after their version: 1.36.yaml.
//
//go:embed *.yaml
var Files embed.FS
