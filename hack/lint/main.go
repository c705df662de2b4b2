// Command lint is golangci-lint with the linter of Kubernetes' API conventions linked in.
package main

import (
	"fmt"
	"os"

	"github.com/golangci/golangci-lint/v2/pkg/commands"
	"github.com/golangci/golangci-lint/v2/pkg/exitcodes"
	_ "sigs.k8s.io/kube-api-linter"
)

func main() {
	if err := commands.Execute(commands.BuildInfo{Version: "2"}); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(exitcodes.Failure)
	}
}
