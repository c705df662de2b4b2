//go:build !linux

// Command e2e runs on Linux only.
package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	fmt.Fprintf(os.Stderr, "e2e-node: a node needs Linux, and this is %s: run it in a Linux machine\n", runtime.GOOS)
	os.Exit(2)
}
